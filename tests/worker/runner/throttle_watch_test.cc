#include "worker/runner/throttle_watch.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::runner {
namespace {

using ::testing::HasSubstr;

class ThrottleWatchTest : public ::testing::Test {
 protected:
  ThrottleWatchTest() : root_(absl::StrCat(::testing::TempDir(), "/throttle-", getpid())) {
    std::filesystem::remove_all(root_);
  }
  ~ThrottleWatchTest() override { std::filesystem::remove_all(root_); }
  // Writes in place, because the watch has the file open.
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    FILE* const out = fopen(file.c_str(), "w");
    ASSERT_NE(out, nullptr);
    fputs((text + "\n").c_str(), out);
    fclose(out);
  }
  void WriteZone() {
    Write("/sys/class/thermal/thermal_zone0/temp", "60000");
    Write("/sys/class/thermal/thermal_zone0/trip_point_0_type", "critical");
    Write("/sys/class/thermal/thermal_zone0/trip_point_0_temp", "95000");
    Write("/sys/class/thermal/thermal_zone0/trip_point_1_type", "passive");
    Write("/sys/class/thermal/thermal_zone0/trip_point_1_temp", "80000");
  }
  void Heat(const std::string& millidegrees) {
    Write("/sys/class/thermal/thermal_zone0/temp", millidegrees);
  }

  const std::string root_;
};

TEST_F(ThrottleWatchTest, HasNoSourcesOnAMachineThatHidesThem) {
  ThrottleWatch watch(root_);
  EXPECT_EQ(watch.sources(), 0);
  EXPECT_EQ(watch.Reason(), "");
}

TEST_F(ThrottleWatchTest, AHotZoneCountsUntilItIsCooler) {
  WriteZone();
  ThrottleWatch watch(root_);
  EXPECT_EQ(watch.sources(), 1);
  EXPECT_EQ(watch.Reason(), "");
  Heat("81500");
  EXPECT_EQ(watch.Reason(), "the processor is at 82 °C, and slows down above 80 °C");
  Heat("78000");  // below the limit, but it would be above it again at once
  EXPECT_THAT(watch.Reason(), HasSubstr("78 °C"));
  Heat("76900");
  EXPECT_EQ(watch.Reason(), "");
  Heat("78000");
  EXPECT_EQ(watch.Reason(), "");
  Heat("200000");  // a missing sensor
  EXPECT_EQ(watch.Reason(), "");
}

TEST_F(ThrottleWatchTest, SeesLowerClocksAndAWeakSupply) {
  Write("/sys/class/thermal/cooling_device0/type", "pwm-fan");
  Write("/sys/class/thermal/cooling_device0/cur_state", "3");
  Write("/sys/class/thermal/cooling_device1/type", "cpufreq-cpu0");
  Write("/sys/class/thermal/cooling_device1/cur_state", "0");
  const std::string firmware = "/sys/devices/platform/soc/soc:firmware/get_throttled";
  Write(firmware, "0");
  ThrottleWatch watch(root_);
  EXPECT_EQ(watch.sources(), 2);
  EXPECT_EQ(watch.Reason(), "") << "a fan slows nothing down";
  Write("/sys/class/thermal/cooling_device1/cur_state", "2");
  EXPECT_THAT(watch.Reason(), HasSubstr("lowers the clock"));
  Write("/sys/class/thermal/cooling_device1/cur_state", "0");
  Write(firmware, "50000");  // since boot, not now
  EXPECT_EQ(watch.Reason(), "");
  Write(firmware, "50005");
  EXPECT_EQ(watch.Reason(), "the supply voltage is too low");
}

TEST_F(ThrottleWatchTest, PausesUntilItIsCoolOrTheLimitHasPassed) {
  WriteZone();
  ThrottleWatch watch(root_);
  absl::Duration slept;
  const auto sleep = [&](absl::Duration step) {
    slept += step;
    if (slept >= absl::Seconds(4)) Heat("70000");
  };
  EXPECT_EQ(PauseWhileThrottled(watch, absl::Seconds(30), sleep), "");
  EXPECT_EQ(slept, absl::ZeroDuration());
  Heat("85000");
  EXPECT_THAT(PauseWhileThrottled(watch, absl::Seconds(30), sleep), HasSubstr("85 °C"));
  EXPECT_EQ(slept, absl::Seconds(4));
  slept = absl::ZeroDuration();
  Heat("85000");
  PauseWhileThrottled(watch, absl::Seconds(2), sleep);
  EXPECT_EQ(slept, absl::Seconds(2));
}

}  // namespace
}  // namespace hone::runner
