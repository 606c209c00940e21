#include "client/network/export/gpu_kernel_files.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/ir/workload_parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::client {
namespace {

constexpr char kWorkload[] =
    "workload add_twice\n"
    "input A: f32[64] constant\n"
    "input B: f32[64]\n"
    "output C[i: 64] = A[i] * 2.0 + B[i]\n";

const GpuKernelFacts kFacts = {.name = "add_twice",
                               .target_key = "opencl-gpu-opencl-4c-01234567",
                               .latency_ns = 1500,
                               .gflops = 2};

ir::Workload Workload() {
  auto workload = ir::ParseWorkload(kWorkload);
  EXPECT_THAT(workload, IsOk());
  return *std::move(workload);
}

target::GpuModule Module() {
  return {.arguments = 3,
          .packed_bytes = 256,
          .workspace_bytes = 0,
          .launches = {{.kernel = "pack", .prepack = true, .grid = {1, 1, 1}, .block = {64, 1, 1}},
                       {.kernel = "add_twice", .grid = {2, 1, 1}, .block = {16, 2, 1}}}};
}

TEST(GpuKernelFilesTest, HeaderStatesBuffersAndLaunches) {
  GoldenOfTest().Add(WithoutVersion(GpuKernelHeader(Workload(), Module(), kFacts)));
}

// The header compiles as C and C++, and the host program as C, with all warnings.
TEST(GpuKernelFilesTest, Compile) {
  const TemporaryFolder root;
  target::GpuModule cuda = Module();
  cuda.kind = target::Kind::kCuda;
  for (const target::GpuModule& module : {Module(), cuda}) {
    std::ofstream(root / "add_twice.h") << GpuKernelHeader(Workload(), module, kFacts);
    std::ofstream(root / "add_twice_host.c") << GpuHostProgram(Workload(), module, kFacts);
    std::ofstream(root / "use.c") << "#include \"add_twice.h\"\n#include \"add_twice.h\"\n"
                                     "size_t use(void) { return add_twice_launches[1].block[0] + "
                                     "ADD_TWICE_LAUNCHES; }\n";
    const std::string flags = " -Wall -Wextra -Werror -c -o /dev/null " + root.path();
    EXPECT_EQ(std::system(absl::StrCat("cc -std=c11", flags, "/use.c").c_str()), 0);
    EXPECT_EQ(std::system(absl::StrCat("c++ -x c++ -std=c++11", flags, "/use.c").c_str()), 0);
    EXPECT_EQ(std::system(absl::StrCat("cc", flags, "/add_twice_host.c").c_str()), 0);
    EXPECT_EQ(std::system(absl::StrCat("cc -std=c11", flags, "/add_twice_host.c").c_str()), 0);
  }
}

}  // namespace
}  // namespace hone::client
