// Handwritten kernels on an OpenCL device, checked and timed by the runner: what is accepted, and
// what each fault leads to.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"
#include "tests/worker/runner/opencl_modules.h"
#include "worker/runner/gpu_device.h"
#include "worker/runner/runner.h"

namespace hone::runner {
namespace {

using record::MeasureResult;
using record::Outcome;
using target::GpuModule;
using ::testing::AllOf;
using ::testing::HasSubstr;

class OpenClKernelTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = WhyNoOpenCl(); !why.empty()) GTEST_SKIP() << why;
    HONE_ASSERT_OK_AND_ASSIGN(auto device, MakeGpuDevice("opencl:0"));
    RunnerOptions options;
    options.device = std::move(device);
    options.lock_path = folder_ / "lock";
    options.deadline = [](absl::Duration) { return nullptr; };
    runner_ = std::make_unique<Runner>(std::move(options));
  }

  record::RunRequest Request(const GpuModule& module) {
    record::RunRequest request;
    request.workload = std::string(kMatmulWorkload);
    request.workload_digest = ir::ParseWorkload(kMatmulWorkload)->StructuralDigest().ToHex();
    request.artifact_path = WriteModule(folder_.path(), module);
    request.reference_data = folder_ / "reference";
    request.seed = 1;
    return request;
  }
  MeasureResult Run(const GpuModule& module) { return runner_->Run(Request(module)); }
  // Expects that a module fails; returns why.
  std::string Failure(const GpuModule& module, Outcome outcome) {
    const MeasureResult result = Run(module);
    EXPECT_EQ(record::OutcomeName(result.outcome), record::OutcomeName(outcome)) << result.detail;
    EXPECT_FALSE(runner_->device_lost());
    return result.detail;
  }

  const TemporaryFolder folder_;
  std::unique_ptr<Runner> runner_;
};

TEST_F(OpenClKernelTest, ARightKernelIsTimed) {
  const MeasureResult result = Run(MatmulModule());
  ASSERT_EQ(result.outcome, Outcome::kOk) << result.detail;
  EXPECT_GT(result.latency_ns, 100);
  EXPECT_LT(result.latency_ns, 1e9);
  EXPECT_LE(result.max_error, 1);
  EXPECT_GE(result.samples_ns.size(), 2u);
}

TEST_F(OpenClKernelTest, AConfirmationWithEmptyCachesIsTimed) {
  record::RunRequest request = Request(MatmulModule());
  request.policy.name = "confirm";
  request.policy.cache = "flushed";
  const MeasureResult result = runner_->Run(request);
  ASSERT_EQ(result.outcome, Outcome::kOk) << result.detail;
  EXPECT_GT(result.latency_ns, 100);
}

// All launches of a module belong to its time.
TEST_F(OpenClKernelTest, EveryLaunchIsCounted) {
  GpuModule module = MatmulModule();
  // Does nothing but take its time, some milliseconds on a slow device.
  module.code += R"(
kernel void wait(global float* A, global float* B, global float* C, global float* packed,
                 global float* workspace) {
  float x = A[0];
  for (int i = 0; i < 2000000; ++i) x = x * 0.5f + 1;
  if (x == -1) workspace[0] = x;
}
)";
  const MeasureResult without = Run(module);
  ASSERT_EQ(without.outcome, Outcome::kOk) << without.detail;
  module.launches.insert(module.launches.begin(), {.kernel = "wait"});
  const MeasureResult with = Run(module);
  ASSERT_EQ(with.outcome, Outcome::kOk) << with.detail;
  EXPECT_GT(with.latency_ns, without.latency_ns + 1e5);
}

TEST_F(OpenClKernelTest, WrongResultsAreFound) {
  EXPECT_THAT(Failure(MatmulModule("sum += 1;"), Outcome::kWrongOutput), HasSubstr("C: element"));
  // An element that is left out is still poison.
  EXPECT_THAT(Failure(MatmulModule("if (i == 5 && j == 7) return;"), Outcome::kWrongOutput),
              AllOf(HasSubstr("C: element 247 is"), HasSubstr("nan, expected")));
  EXPECT_THAT(Failure(MatmulModule("if (i == 0 && j == 0) A[0] = nextafter(A[0], 2.0f);"),
                      Outcome::kWrongOutput),
              HasSubstr("changes its inputs"));
  EXPECT_EQ(Run(MatmulModule()).outcome, Outcome::kOk);
  // Changed inputs explain a wrong output. The next kernel gets the right ones.
  EXPECT_THAT(Failure(MatmulModule("A[i * 32] = 0; sum += 1;"), Outcome::kWrongOutput),
              HasSubstr("changes its inputs"));
  EXPECT_EQ(Run(MatmulModule()).outcome, Outcome::kOk);
}

TEST_F(OpenClKernelTest, WritesOutsideAreFound) {
  EXPECT_THAT(
      Failure(MatmulModule("if (i == 63 && j == 47) C[64 * 48 + 2] = 1;"), Outcome::kWrongOutput),
      HasSubstr("outside of output C, at byte 12296 of 12288"));
  EXPECT_THAT(Failure(MatmulModule("if (i == 0 && j == 0) C[-1] = 1;"), Outcome::kWrongOutput),
              HasSubstr("outside of output C, at byte -1 of"));
  EXPECT_THAT(Failure(MatmulModule("if (i == 0 && j == 0) B[32 * 48] = 1;"), Outcome::kWrongOutput),
              HasSubstr("outside of input B"));
  EXPECT_EQ(Run(MatmulModule()).outcome, Outcome::kOk);
}

TEST_F(OpenClKernelTest, ABuildErrorHasItsLog) {
  const std::string detail = Failure(MatmulModule("sum = missing;"), Outcome::kCompileError);
  EXPECT_THAT(detail,
              AllOf(HasSubstr("the driver refuses the kernel's code"), HasSubstr("missing")));
  GpuModule empty = MatmulModule();
  empty.code = "";
  EXPECT_FALSE(Run(empty).detail.empty());
}

TEST_F(OpenClKernelTest, LaunchesOverTheLimitsAreRefused) {
  GpuModule module = MatmulModule();
  module.launches[0].block = {1 << 16, 1 << 16, 1};
  EXPECT_THAT(Failure(module, Outcome::kInvalid), HasSubstr("has blocks of 4294967296 threads"));
  module = MatmulModule();
  module.launches[0].block = {1, 1, 1 << 16};
  EXPECT_THAT(Failure(module, Outcome::kInvalid), HasSubstr("the device allows"));
  module = MatmulModule();
  module.launches[0].grid = {int64_t{1} << 31, 1, 1};
  EXPECT_THAT(Failure(module, Outcome::kInvalid), HasSubstr("2^32 is too many"));
  module = MatmulModule();
  module.launches[0].shared_bytes = int64_t{1} << 39;  // a CPU offers the size of its caches
  EXPECT_THAT(Failure(module, Outcome::kInvalid), HasSubstr("bytes of shared memory"));
  module = MatmulModule();
  module.workspace_bytes = int64_t{1} << 40;  // the most that a module may state
  EXPECT_THAT(Failure(module, Outcome::kOutOfMemory), HasSubstr("bytes of workspace"));
}

TEST_F(OpenClKernelTest, ModulesThatContradictTheirCodeAreRefused) {
  GpuModule module = MatmulModule();
  module.launches[0].kernel = "another";
  EXPECT_THAT(Failure(module, Outcome::kInvalid), HasSubstr("find kernel 'another'"));
  module = MatmulModule();
  module.arguments = 2;
  EXPECT_THAT(Failure(module, Outcome::kInvalid), HasSubstr("has 5 parameters instead of 4"));
  module = MatmulModule();
  module.kind = target::Kind::kCuda;
  EXPECT_THAT(Failure(module, Outcome::kInvalid), HasSubstr("for cuda"));
  module = MatmulModule();
  module.launches[0].prepack = true;
  EXPECT_THAT(Failure(module, Outcome::kInvalid), HasSubstr("only packs constants"));
  // A module for another workload.
  module = DenseModule();
  module.arguments = 4;
  module.code = absl::StrCat("kernel void f(global float* a, global float* b, global float* c, ",
                             "global float* d, global float* p, global float* w) { *a = 1; }");
  module.launches = {{.kernel = "f"}};
  EXPECT_THAT(Failure(module, Outcome::kInvalid), HasSubstr("has 4 inputs and outputs"));
}

TEST(OpenClDeviceTest, AnUnknownDeviceIsRefused) {
  EXPECT_THAT(MakeGpuDevice("opencl:1000"), StatusIs(absl::StatusCode::kNotFound));
  if (!WhyNoOpenCl().empty()) GTEST_SKIP() << WhyNoOpenCl();
  EXPECT_THAT(MakeGpuDevice("metal"), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(OpenClDeviceTest, MeasuresItsPeak) {
  if (!WhyNoOpenCl().empty()) GTEST_SKIP() << WhyNoOpenCl();
  HONE_ASSERT_OK_AND_ASSIGN(const Peak peak, MeasureGpuPeak("opencl"));
  EXPECT_GT(peak.gflops_all_cores(), 0.1);
  EXPECT_GT(peak.read_gbps_all_cores, 0.01);
  EXPECT_GE(peak.cores, 1);
  // The constants are those of the peaks.
  std::printf("%s\n", peak.calibration.c_str());
  HONE_ASSERT_OK_AND_ASSIGN(const auto measured, target::Calibration::FromText(peak.calibration));
  EXPECT_NEAR(measured.fma * peak.gflops_all_cores() / peak.cores, 64, 0.1);
  EXPECT_NEAR(measured.memory_shared_line * peak.read_gbps_all_cores, 64, 0.1);
  EXPECT_GT(measured.launch, 100);
  EXPECT_LT(measured.launch, 1e7);
  EXPECT_EQ(measured.fma_latency, 0) << "which is not measured";
}

}  // namespace
}  // namespace hone::runner
