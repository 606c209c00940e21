// NVIDIA's own compiler, which needs no GPU. Skipped if it is not installed
// (deploy/install-deps.sh).
#include "worker/builder/nvrtc.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/target/gpu_module.h"
#include "common/target/presets.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "worker/builder/cuda_facts.h"
#include "worker/builder/toolchain.h"

namespace hone::builder {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr char kSource[] = R"(
extern "C" __global__ void __launch_bounds__(128) scale(const float* a, float* b, void*, void*) {
  __shared__ float tile[128];
  tile[threadIdx.x] = a[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  b[blockIdx.x * 128 + threadIdx.x] = 2 * tile[127 - threadIdx.x];
}
)";

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    const auto loaded = Nvrtc::Loaded();
    if (!loaded.ok()) GTEST_SKIP() << loaded.status().message();
    nvrtc_ = *loaded;
  }
  codegen::Code Code(const std::string& source) {
    codegen::Code code{.format = codegen::kCudaSource, .bytes = source};
    code.module = target::GpuModule{
        .kind = target::Kind::kCuda,
        .arguments = 2,
        .launches = {
            {.kernel = "scale", .grid = {4, 1, 1}, .block = {128, 1, 1}, .shared_bytes = 512}}};
    return code;
  }

  const Nvrtc* nvrtc_ = nullptr;
};

TEST_F(NvrtcTest, CompilesForEveryPreset) {
  for (const target::NvidiaGpu& gpu : target::NvidiaGpus()) {
    const std::string architecture = target::CudaTarget(gpu).cpu;
    const auto compiled = nvrtc_->Compile(kSource, architecture);
    ASSERT_THAT(compiled, IsOk()) << gpu.preset;
    EXPECT_THAT(compiled->cubin, StartsWith("\x7f"
                                            "ELF"))
        << gpu.preset;
    EXPECT_THAT(compiled->ptx, AllOf(HasSubstr(".entry scale"), HasSubstr(architecture)));
    const auto facts = ReadCudaFacts(compiled->log);
    ASSERT_EQ(facts.count("scale"), 1u) << compiled->log;
    EXPECT_GT(facts.at("scale").registers, 0);
    EXPECT_EQ(facts.at("scale").shared_bytes, 512) << gpu.preset;
  }
}

TEST_F(NvrtcTest, ErrorsHaveTheCompilersLog) {
  EXPECT_THAT(nvrtc_->Compile("__global__ void f() { missing(); }", "sm_80"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("kernel.cu(1)"), HasSubstr("missing"))));
  EXPECT_THAT(nvrtc_->Compile(kSource, "sm_20"),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("sm_20"), HasSubstr("sm_80"))));
}

TEST_F(NvrtcTest, TheToolchainMakesAModuleWithItsSources) {
  const target::Target target = *target::TargetByName("nvidia/a100");
  HONE_ASSERT_OK_AND_ASSIGN(const auto finished, Finish(Code(kSource), target, "/tmp"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto module, target::GpuModule::Decode(finished.binary));
  EXPECT_EQ(module.kind, target::Kind::kCuda);
  EXPECT_THAT(module.code, StartsWith("\x7f"
                                      "ELF"));
  EXPECT_EQ(finished.facts.code_bytes, static_cast<int64_t>(module.code.size()));
  EXPECT_EQ(finished.facts.spills, 0);
  HONE_ASSERT_OK_AND_ASSIGN(const auto sources, target::GpuSources::Decode(finished.sources));
  EXPECT_EQ(sources.source, kSource);
  EXPECT_THAT(sources.assembly, HasSubstr(".target sm_80"));
  // Equal code gives equal artifacts.
  EXPECT_EQ(Finish(Code(kSource), target, "/tmp")->binary, finished.binary);
}

TEST_F(NvrtcTest, RemarksTellRegistersAndOccupancy) {
  const target::Target target = *target::TargetByName("nvidia/a100");
  EXPECT_THAT(RemarksOn(Code(kSource), target),
              AllOf(HasSubstr("for sm_80:\n// scale: "), HasSubstr(" registers, 0 bytes spilled"),
                    HasSubstr("512 bytes of shared memory, occupancy 100 %\n")));
  EXPECT_THAT(RemarksOn(Code("missing"), target), HasSubstr("// NVRTC refuses the source"));
}

TEST_F(NvrtcTest, TheToolchainRefusesWhatCannotRun) {
  codegen::Code code = Code(kSource);
  code.module->launches[0].shared_bytes = 100 << 10;
  EXPECT_THAT(Finish(code, *target::TargetByName("nvidia/a100"), "/tmp"), IsOk());
  EXPECT_THAT(
      Finish(code, *target::TargetByName("nvidia/l4"), "/tmp"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("102400 bytes of shared memory")));
}

TEST(NvrtcPathsTest, TheUsersChoiceIsTheOnlyOne) {
  setenv("HONE_NVRTC", "/somewhere/libnvrtc.so.12", 1);
  EXPECT_THAT(NvrtcCandidates(12), ElementsAre("/somewhere/libnvrtc.so.12"));
  setenv("HONE_NVRTC", "/nowhere", 1);
  EXPECT_THAT(NvrtcCandidates(12), ElementsAre("/nowhere"));
  unsetenv("HONE_NVRTC");
  EXPECT_EQ(NvrtcCandidates(0)[0], "libnvrtc.so.13");
}

// A folder of packages with the given files.
class NvrtcPackagesTest : public testing::Test {
 protected:
  ~NvrtcPackagesTest() override {
    for (const char* const variable : {"HONE_NVRTC", "VIRTUAL_ENV"}) unsetenv(variable);
  }
  std::string Add(const std::string& file) {
    const std::filesystem::path path = std::filesystem::path(folder_.path()) / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream{path};
    return path;
  }

  const TemporaryFolder folder_;
};

TEST_F(NvrtcPackagesTest, TheNewestVersionForTheDriverIsFirst) {
  const std::string of_12 = Add("nvidia/cuda_nvrtc/lib/libnvrtc.so.12"),
                    of_13 = Add("nvidia/cu13/lib/libnvrtc.so.13");
  setenv("HONE_NVRTC", folder_.path().c_str(), 1);
  EXPECT_THAT(NvrtcCandidates(0), ElementsAre(of_13, of_12)) << "no driver";
  EXPECT_THAT(NvrtcCandidates(13), ElementsAre(of_13, of_12));
  EXPECT_THAT(NvrtcCandidates(12), ElementsAre(of_12, of_13));
}

TEST_F(NvrtcPackagesTest, AnEmptyFolderIsNotReplaced) {
  setenv("HONE_NVRTC", folder_.path().c_str(), 1);
  EXPECT_THAT(NvrtcCandidates(0), ElementsAre(folder_ / "libnvrtc.so.13"));
}

TEST_F(NvrtcPackagesTest, NewerPythonsAreFirst) {
  constexpr char kPath[] = "/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12";
  const std::string of_9 = Add(absl::StrCat("lib/python3.9", kPath)),
                    of_12 = Add(absl::StrCat("lib/python3.12", kPath));
  setenv("VIRTUAL_ENV", folder_.path().c_str(), 1);
  std::vector<std::string> candidates = NvrtcCandidates(0);
  std::erase_if(candidates,
                [&](const std::string& path) { return !path.starts_with(folder_.path()); });
  EXPECT_THAT(candidates, ElementsAre(of_12, of_9));
}

}  // namespace
}  // namespace hone::builder
