// What every device must do: keep tensors between canaries, load the artifacts of its targets, and
// run them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/file.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/schedule/trace.h"
#include "common/target/cuda/detect.h"
#include "common/target/target.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "tests/worker/runner/cuda_modules.h"
#include "tests/worker/runner/opencl_modules.h"
#include "worker/builder/build.h"
#include "worker/builder/nvrtc.h"
#include "worker/runner/device.h"
#include "worker/runner/gpu_device.h"

namespace hone::runner {
namespace {

// C = A · W with packed weights, and a buffer in the workspace.
constexpr char kTrace[] = R"(workload dense
input A: f32[8, 16]
input W: f32[16, 32] constant
H[i: 8, k: 16] = A[i, k] + 1.0
output C[i: 8, j: 32] = sum(k: 16) H[i, k] * W[k, j]
trace 1
b0 = block("C")
l0, l1, l2 = loops(b0)
b1 = cache_read(b0, "W", "global")
transform_layout(b1, "k, j -> j / 16, k, j % 16")
parallel(l0)
)";

std::string BuildForCpu(const std::string& folder) {
  const auto file = schedule::ParseTraceFile(kTrace);
  EXPECT_THAT(file, IsOk());
  const record::BuildResponse built =
      builder::Build({.workload = file->workload.ToText(),
                      .space = schedule::TraceFileText(file->workload, file->parsed.trace),
                      .decisions = file->parsed.decisions,
                      .target = target::DetectHost().ToText(),
                      .artifact_dir = folder});
  EXPECT_EQ(built.outcome, record::Outcome::kOk) << built.detail;
  return absl::StrCat(folder, "/", built.artifact_digest);
}

std::string NothingMissing() { return ""; }
absl::StatusOr<std::unique_ptr<Device>> MakeCpu() { return MakeCpuDevice(); }
absl::StatusOr<std::unique_ptr<Device>> MakeOpenCl() { return MakeGpuDevice("opencl"); }
std::string ModuleForOpenCl(const std::string& folder) {
  return WriteModule(folder, DenseModule());
}

absl::StatusOr<std::unique_ptr<Device>> MakeFakeCuda() {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<target::GpuContext> context, FakeCudaContext());
  return MakeGpuDevice(std::move(context));
}
std::string ModuleForCuda(const std::string& folder) {
  return WriteModule(folder, CudaDenseModule());
}

// A GPU of this machine.
std::string WhyNoCuda() {
  const absl::Status device = cuda::TargetOf("cuda").status();
  const absl::Status compiler = builder::Nvrtc::Loaded().status();
  return std::string(device.ok() ? compiler.message() : device.message());
}
absl::StatusOr<std::unique_ptr<Device>> MakeCuda() { return MakeGpuDevice("cuda"); }
std::string CompiledForCuda(const std::string& folder) {
  target::GpuModule module = CudaDenseSource();
  const auto compiled =
      (*builder::Nvrtc::Loaded())->Compile(module.code, cuda::TargetOf("cuda")->cpu);
  EXPECT_THAT(compiled, IsOk());
  module.code = compiled->cubin;
  return WriteModule(folder, module);
}

struct Candidate {
  const char* name;
  std::string (*why_not)();  // why it cannot be tested on this machine, or ""
  absl::StatusOr<std::unique_ptr<Device>> (*make)();
  std::string (*build)(const std::string& folder);  // makes an artifact of the workload above
  int64_t parts;                                    // of this artifact
  const char* lock = nullptr;                       // Device::own_lock; null: depends on the device
};
void PrintTo(const Candidate& candidate, std::ostream* out) { *out << candidate.name; }

// One line per device.
const Candidate kCandidates[] = {
    {"cpu", NothingMissing, MakeCpu, BuildForCpu, 8, ""},
    {"cuda", WhyNoCuda, MakeCuda, CompiledForCuda, 0},
    {"fake_cuda", NothingMissing, MakeFakeCuda, ModuleForCuda, 0, "0000:3b:00.0"},
    {"opencl", WhyNoOpenCl, MakeOpenCl, ModuleForOpenCl, 0},
};

class DeviceConformanceTest : public testing::TestWithParam<Candidate> {
 protected:
  void SetUp() override {
    if (const std::string why = GetParam().why_not(); !why.empty()) GTEST_SKIP() << why;
    HONE_ASSERT_OK_AND_ASSIGN(device_, GetParam().make());
  }
  std::unique_ptr<DeviceBuffer> Floats(const std::vector<float>& values) {
    const auto bytes = static_cast<int64_t>(values.size() * sizeof(float));
    auto buffer = device_->Allocate(bytes, 1234);
    EXPECT_THAT(buffer, IsOk());
    EXPECT_THAT((*buffer)->Write([&](void* to) { std::memcpy(to, values.data(), bytes); }), IsOk());
    return *std::move(buffer);
  }
  static std::vector<float> ValuesOf(DeviceBuffer& buffer) {
    const auto data = buffer.Read();
    EXPECT_THAT(data, IsOk());
    const auto* const floats = static_cast<const float*>(*data);
    return {floats, floats + buffer.bytes() / sizeof(float)};
  }
  absl::Status LoadError(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ / name;
    EXPECT_THAT(WriteFileAtomically(path, bytes, Durability::kProcess), IsOk());
    return device_->Load(path, 1).status();
  }

  std::unique_ptr<Device> device_;
  const TemporaryFolder folder_;
};

TEST_P(DeviceConformanceTest, BuffersKeepWhatIsWritten) {
  for (const int64_t count : {1, 7, 1000}) {
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 1.0f);
    const std::unique_ptr<DeviceBuffer> buffer = Floats(values);
    EXPECT_EQ(buffer->bytes(), count * 4);
    EXPECT_EQ(ValuesOf(*buffer), values);
    EXPECT_EQ(*buffer->WrittenOutside(), std::nullopt);
  }
}

TEST_P(DeviceConformanceTest, PoisonIsNaN) {
  const std::unique_ptr<DeviceBuffer> buffer = Floats({1, 2, 3});
  ASSERT_THAT(buffer->Poison(), IsOk());
  for (const float value : ValuesOf(*buffer)) EXPECT_NE(value, value);
}

TEST_P(DeviceConformanceTest, TooMuchMemoryIsRefused) {
  EXPECT_THAT(device_->Allocate(int64_t{1} << 55, 0),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_P(DeviceConformanceTest, RunsAKernelWithConstantsAndWorkspace) {
  std::vector<float> a(8 * 16), w(16 * 32), expected(8 * 32);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(i % 5);
  for (size_t i = 0; i < w.size(); ++i) w[i] = static_cast<float>(i % 3) - 1;
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 32; ++j) {
      for (int k = 0; k < 16; ++k) expected[i * 32 + j] += (a[i * 16 + k] + 1) * w[k * 32 + j];
    }
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto kernel, device_->Load(GetParam().build(folder_.path()), 5));
  const std::unique_ptr<DeviceBuffer> in = Floats(a), weights = Floats(w),
                                      out = Floats(std::vector<float>(8 * 32));
  DeviceBuffer* const buffers[] = {in.get(), weights.get(), out.get()};
  struct Runs {
    int64_t count;
    bool flushed;
  };
  for (const auto [count, flushed] : {Runs{3, false}, Runs{70, false}, Runs{3, true}}) {
    ASSERT_THAT(device_->PrepareTiming(0, flushed), IsOk());
    ASSERT_THAT(out->Poison(), IsOk());
    ASSERT_THAT(kernel->PoisonWorkspace(), IsOk());
    ASSERT_THAT(kernel->Prepack(buffers), IsOk());
    HONE_ASSERT_OK_AND_ASSIGN(const double ns, kernel->Run(buffers, count, flushed));
    EXPECT_GT(ns, 0);
    EXPECT_EQ(ValuesOf(*out), expected);
    EXPECT_EQ(*out->WrittenOutside(), std::nullopt);
  }
  EXPECT_GE(device_->concurrency(), 1);
  ASSERT_EQ(kernel->parts(), GetParam().parts);
  if (GetParam().parts == 0) return;
  // Nothing follows the loop, so the workspace still has the first stage.
  ASSERT_THAT(out->Poison(), IsOk());
  const absl::StatusOr<double> ns = kernel->RunPart(buffers, 2, 3);
  ASSERT_THAT(ns, IsOk());
  const std::vector<float> got = ValuesOf(*out);
  for (int j = 0; j < 32; ++j) {
    EXPECT_EQ(got[2 * 32 + j], expected[2 * 32 + j]);
    EXPECT_NE(got[3 * 32 + j], got[3 * 32 + j]) << "another part was run";
  }
}

TEST_P(DeviceConformanceTest, OnlyADeviceThatSharesNothingHasItsOwnLock) {
  if (GetParam().lock == nullptr) GTEST_SKIP() << "depends on the device";
  EXPECT_EQ(device_->own_lock(), GetParam().lock);
}

TEST_P(DeviceConformanceTest, RefusesArtifactsOfOtherDevices) {
  // A module for the CPU, and an ELF file for all others.
  const bool is_cpu = std::string_view(GetParam().name) == "cpu";
  const std::string path = is_cpu ? ModuleForOpenCl(folder_.path()) : BuildForCpu(folder_.path());
  EXPECT_THAT(device_->Load(path, 1), StatusIs(absl::StatusCode::kInvalidArgument,
                                               testing::HasSubstr("the artifact is for a")));
}

TEST_P(DeviceConformanceTest, AProbeComparesWithTheBestTime) {
  ASSERT_THAT(device_->PrepareTiming(0, false), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Probe> probe, device_->MakeProbe(0));
  EXPECT_GE(probe->Sample(), 1);
  EXPECT_GE(probe->Drift(), 1);
  // A machine that was ten million times faster when it was registered.
  HONE_ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Probe> slow, device_->MakeProbe(1e12));
  EXPECT_GT(slow->Drift(), 1000);
  EXPECT_FALSE(device_->lost());
}

TEST_P(DeviceConformanceTest, LoadErrorsNameTheirCause) {
  EXPECT_THAT(device_->Load(folder_ / "missing", 1), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(LoadError(std::string(64, '0'), "damaged"), StatusIs(absl::StatusCode::kDataLoss));
  const std::string text = "not an artifact";
  EXPECT_THAT(LoadError(Sha256Of(text), text), StatusIs(absl::StatusCode::kInvalidArgument));
}

INSTANTIATE_TEST_SUITE_P(All, DeviceConformanceTest, testing::ValuesIn(kCandidates),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hone::runner
