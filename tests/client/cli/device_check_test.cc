#include "client/cli/device_check.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using State = HealthCheck::State;

const target::ListedDevice kCpu = {"cpu", "A CPU", "", *target::TargetByName("x86-avx2")};

TEST(DeviceCheckTest, ListsTheOpenClDevices) {
  const target::Target gpu = *target::TargetByName("arm/mali-g52");
  const auto checks = CheckDevices(
      target::DeviceList{.devices = {kCpu,
                                     {"opencl:0", "Mali-G52", "ARM Platform, driver 3.0", gpu},
                                     {"opencl:1", "Mali-G52", "ARM Platform, driver 3.0", gpu}}});
  ASSERT_EQ(checks.size(), 2u);
  EXPECT_EQ(checks[0].name, "opencl:0");
  EXPECT_EQ(checks[0].state, State::kOk);
  EXPECT_THAT(checks[0].finding,
              AllOf(HasSubstr("Mali-G52"), HasSubstr("driver 3.0"), HasSubstr(gpu.Key())));
  EXPECT_EQ(checks[1].name, "opencl:1");
}

TEST(DeviceCheckTest, NoDeviceIsNoProblem) {
  const auto checks = CheckDevices(
      target::DeviceList{.devices = {kCpu}, .opencl_problem = "no driver is installed"});
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].name, "OpenCL");
  EXPECT_EQ(checks[0].state, State::kOk);
  EXPECT_EQ(checks[0].finding, "no driver is installed");
}

TEST(DeviceCheckTest, DriversThatCrashAreReported) {
  const auto checks =
      CheckDevices(absl::AbortedError("hone-runner ended with signal 11 (Segmentation fault)"));
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].state, State::kWarning);
  EXPECT_THAT(checks[0].finding, HasSubstr("Segmentation fault"));
  EXPECT_THAT(checks[0].advice, HasSubstr("driver"));
}

}  // namespace
}  // namespace hone::cli
