// Calls of kernels on the first OpenCL device: by hone run's function, and by the exported program.

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/export/gpu_kernel_files.h"
#include "client/network/export/kernel_call.h"
#include "common/base/file.h"
#include "common/ir/workload_parser.h"
#include "common/target/gpu_module.h"
#include "common/target/opencl/api.h"
#include "common/target/opencl/detect.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/integration/process.h"
#include "tests/status.h"

namespace hone::client {
namespace {

using ::testing::HasSubstr;

constexpr int kElements = 64;
constexpr char kWorkload[] =
    "workload add_twice\n"
    "input A: f32[64] constant\n"
    "input B: f32[64]\n"
    "output C[i: 64] = A[i] * 2.0 + B[i]\n";
// The first kernel packs 2A, the second one adds B in the workspace, the third one copies the sum.
constexpr char kSource[] = R"(
#define PARAMETERS __global const float* A, __global const float* B, __global float* C, \
                   __global uchar* packed, __global uchar* workspace
__kernel void pack(PARAMETERS) {
  const int i = get_global_id(0);
  ((__global float*)packed)[i] = 2.0f * A[i];
}
__kernel void add(PARAMETERS) {
  const int i = get_global_id(1) * 16 + get_local_id(0);
  ((__global float*)workspace)[i] = ((__global float*)packed)[i] + B[i];
}
__kernel void store(PARAMETERS) {
  const int i = get_group_id(0) * 32 + get_local_id(0);
  C[i] = ((__global float*)workspace)[i];
}
)";

class OpenClCallTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto api = opencl::LoadedApi();
    if (!api.ok()) GTEST_SKIP() << api.status();
    const auto devices = opencl::ListDevices(**api);
    if (!devices.ok()) GTEST_SKIP() << devices.status();
    target_ = (*devices)[0].target;
    workload_ = *ir::ParseWorkload(kWorkload);
    module_ = {.arguments = 3,
               .packed_bytes = 4 * kElements,
               .workspace_bytes = 4 * kElements,
               .launches = {{.kernel = "pack", .prepack = true, .block = {kElements, 1, 1}},
                            {.kernel = "add", .grid = {1, 4, 1}, .block = {16, 1, 1}},
                            {.kernel = "store", .grid = {2, 1, 1}, .block = {32, 1, 1}}},
               .code = kSource};
    for (int i = 0; i < kElements; ++i) {
      const float a = 0.5f * static_cast<float>(i), b = static_cast<float>(-i) - 1, c = 2 * a + b;
      a_.append(reinterpret_cast<const char*>(&a), sizeof a);
      b_.append(reinterpret_cast<const char*>(&b), sizeof b);
      c_.append(reinterpret_cast<const char*>(&c), sizeof c);
    }
  }
  absl::StatusOr<std::vector<std::string>> Call(absl::string_view device = "") const {
    return CallKernel(workload_, {.shared_object = module_.Encode(), .target = target_.ToText()},
                      {a_, b_}, device);
  }

  target::Target target_;
  ir::Workload workload_;
  target::GpuModule module_;
  std::string a_, b_, c_;
};

TEST_F(OpenClCallTest, RunsOnTheNamedDevice) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Call("opencl:0"));
  EXPECT_EQ(outputs[0], c_);
  EXPECT_THAT(Call("opencl:99"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(OpenClCallTest, PacksAndRunsAllLaunchesInOrder) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Call());
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0], c_);
}

TEST_F(OpenClCallTest, BuildErrorsHaveTheLog) {
  module_.code = "__kernel void pack(int x) { return undeclared_name; }";
  EXPECT_THAT(Call(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("undeclared_name")));
}

TEST_F(OpenClCallTest, MissingKernelsAreNamed) {
  module_.launches[1].kernel = "subtract";
  EXPECT_THAT(std::string(Call().status().message()), HasSubstr("subtract"));
}

TEST_F(OpenClCallTest, OtherTargetsAreRefused) {
  target_.cpu = "another-gpu";
  EXPECT_THAT(Call(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another-gpu")));
}

TEST_F(OpenClCallTest, ExportedProgramComputesTheSame) {
  TemporaryFolder folder;
  const GpuKernelFacts facts = {.name = "add_twice", .target_key = target_.Key()};
  const auto write = [&](const std::string& name, const std::string& content) {
    std::ofstream(folder / name, std::ios::binary) << content;
  };
  write("add_twice.cl", module_.code);
  write("add_twice.h", GpuKernelHeader(workload_, module_, facts));
  write("add_twice_host.c", GpuHostProgram(workload_, module_, facts));
  write("A.bin", a_);
  write("B.bin", b_);
  const std::string program = folder / "add_twice_host";
  const auto compiled = integration::RunProgram(
      {"/usr/bin/cc", "-Wall", "-Wextra", "-Werror", program + ".c", "-o", program, "-ldl"});
  ASSERT_EQ(compiled.code, 0) << compiled.errors;
  const integration::Words files = {folder / "add_twice.cl", folder / "A.bin", folder / "B.bin",
                                    folder / "C.bin"};
  const auto ran = integration::RunProgram(integration::With({program}, files));
  ASSERT_EQ(ran.code, 0) << ran.errors;
  EXPECT_THAT(ran.output, HasSubstr("us for each call"));
  EXPECT_EQ(*ReadFile(folder / "C.bin"), c_);

  // Without files, it only prints the time.
  EXPECT_EQ(integration::RunProgram({program, files[0]}).code, 0);
  // Wrong files are named.
  write("A.bin", "short");
  const auto wrong = integration::RunProgram(integration::With({program}, files));
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.errors, HasSubstr("A.bin has 5 bytes, not 256"));
  EXPECT_EQ(integration::RunProgram({program, files[0], files[1]}).code, 2);
}

}  // namespace
}  // namespace hone::client
