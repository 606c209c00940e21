#include "absl/strings/match.h"
#include "client/cli/fleet/health_check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

using State = HealthCheck::State;

const target::ListedDevice kCpu = {"cpu", "A CPU", "", *target::TargetByName("x86-avx2")};

TEST(DeviceCheckTest, ListsTheOpenClDevices) {
  GoldenOfTest golden;
  const target::Target gpu = *target::TargetByName("arm/mali-g52");
  golden.Name(gpu.Key(), "KEY");
  const auto checks = CheckDevices(
      target::DeviceList{.devices = {kCpu,
                                     {"opencl:0", "Mali-G52", "ARM Platform, driver 3.0", gpu},
                                     {"opencl:1", "Mali-G52", "ARM Platform, driver 3.0", gpu}}});
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].name, "opencl:0");
  EXPECT_EQ(checks[0].state, State::kOk);
  golden.Add(checks[0].finding);
  EXPECT_EQ(checks[1].name, "opencl:1");
}

TEST(DeviceCheckTest, SaysWhatIsWrongWithAGpu) {
  const target::Target gpu = *target::TargetByName("nvidia/a100");
  const auto checks = CheckDevices(target::DeviceList{
      .devices = {{.device = "cuda:0", .name = "Tesla K80", .problem = "it is too old"},
                  {.device = "cuda:1", .name = "A100", .target = gpu, .warning = "ECC errors"}}});
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].state, State::kWarning);
  GoldenOfTest().Add(checks[0].finding);
  EXPECT_EQ(checks[0].advice, "it is too old");
  EXPECT_EQ(checks[1].state, State::kWarning);
  EXPECT_EQ(checks[1].advice, "ECC errors");
}

TEST(DeviceCheckTest, NoDeviceIsNoProblem) {
  const auto checks = CheckDevices(target::DeviceList{
      .devices = {kCpu},
      .problems = {{"opencl", "OpenCL cannot be used: no driver"}, {"cuda", "no GPU"}}});
  ASSERT_EQ(checks.size(), 2u);
  for (const HealthCheck& check : checks) {
    EXPECT_EQ(check.state, State::kOk);
    EXPECT_EQ(check.finding, check.name == "OpenCL" ? "not used: no driver" : "not used: no GPU");
  }
  // CheckTarget reports that of the target.
  const auto other = CheckDevices(target::DeviceList{.problems = {{"opencl", "a"}, {"cuda", "b"}}},
                                  /*target=*/"cuda:1");
  ASSERT_EQ(other.size(), 1u);
  EXPECT_EQ(other[0].name, "OpenCL");
}

TEST(DeviceCheckTest, SaysWhetherKernelsForCudaCanBeBuilt) {
  const auto there = CheckNvrtc(R"({"nvrtc": {"version": "12.9", "path": "/a/b"}})", true);
  ASSERT_EQ(there.size(), 1u);
  EXPECT_EQ(there[0].state, State::kOk);
  GoldenOfTest().Add(there[0].finding);
  for (const bool has_gpu : {false, true}) {
    const auto missing = CheckNvrtc(R"({"nvrtc_problem": "install it"})", has_gpu);
    ASSERT_EQ(missing.size(), 1u);
    EXPECT_EQ(missing[0].state, has_gpu ? State::kWarning : State::kOk);
    EXPECT_EQ(missing[0].finding, "install it");
    EXPECT_EQ(absl::StartsWith(missing[0].advice, "only needed"), !has_gpu);
  }
  EXPECT_TRUE(CheckNvrtc(absl::NotFoundError("no builder"), true).empty());
  EXPECT_TRUE(CheckNvrtc(std::string("garbage"), true).empty());
}

TEST(DeviceCheckTest, DriversThatCrashAreReported) {
  GoldenOfTest golden;
  const auto checks =
      CheckDevices(absl::AbortedError("hone-runner ended with signal 11 (Segmentation fault)"));
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].state, State::kWarning);
  golden.Add(checks[0].finding);
  golden.Add(checks[0].advice);
}

}  // namespace
}  // namespace hone::cli
