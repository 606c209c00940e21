#include "worker/runner/machine_monitor.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/target/host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_root.h"
#include "tests/temporary_folder.h"

namespace hone::runner {
namespace {

class MachineMonitorTest : public ::testing::Test {
 protected:
  // Writes the sum of the ticks of two CPUs.
  void WriteStat(int user, int idle, int steal) {
    root_.Write("/proc/stat",
                absl::StrCat("cpu  ", user, " 0 0 ", idle, " 0 0 0 ", steal, " 0 0\n",
                             "cpu0 1 1 1 1 1 1 1 1 0 0\ncpu1 1 1 1 1 1 1 1 1 0 0\nintr 5\n"));
  }
  const FakeRoot root_;
};

TEST_F(MachineMonitorTest, ReadsAvailableFiles) {
  root_.Write(target::FrequencyFolder() + "/scaling_cur_freq", "2400000\n");
  root_.Write("/sys/class/hwmon/hwmon0/name", "nvme\n");
  root_.Write("/sys/class/hwmon/hwmon0/temp1_input", "90000\n");
  root_.Write("/sys/class/hwmon/hwmon1/name", "coretemp\n");
  root_.Write("/sys/class/hwmon/hwmon1/temp1_input", "51000\n");
  root_.Write("/sys/class/hwmon/hwmon1/temp2_input", "63500\n");
  MachineMonitor monitor(root_.path());
  const record::MachineState state = monitor.Look();
  EXPECT_EQ(state.frequency_mhz, 2400);
  EXPECT_EQ(state.temperature_c, 63.5) << "of the processor, not of the disk";
  root_.Write(target::FrequencyFolder() + "/scaling_cur_freq", "800000\n");
  EXPECT_EQ(monitor.Look().frequency_mhz, 800) << "the CPU throttled";
}

TEST_F(MachineMonitorTest, FallsBackToOtherFiles) {
  root_.Write("/proc/cpuinfo",
              "processor\t: 0\ncpu MHz\t\t: 2200.123\nprocessor: 1\ncpu MHz : 2900.5\n");
  root_.Write("/sys/class/thermal/thermal_zone0/type", "acpitz\n");
  root_.Write("/sys/class/thermal/thermal_zone0/temp", "20000\n");
  root_.Write("/sys/class/thermal/thermal_zone1/type", "cpu-thermal\n");
  root_.Write("/sys/class/thermal/thermal_zone1/temp", "47000\n");
  MachineMonitor monitor(root_.path());
  EXPECT_EQ(monitor.Look().frequency_mhz, 2900.5);
  EXPECT_EQ(monitor.Look().temperature_c, 47);
}

TEST_F(MachineMonitorTest, OpensFewOfManySensors) {
  for (int socket = 0; socket < 8; ++socket) {
    const std::string folder = absl::StrCat("/sys/class/hwmon/hwmon", socket);
    root_.Write(folder + "/name", "coretemp\n");
    for (int core = 1; core <= 40; ++core) {
      root_.Write(absl::StrCat(folder, "/temp", core, "_input"), "50000\n");
    }
  }
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  MachineMonitor monitor(root_.path());
  EXPECT_EQ(open_files() - before, 32);
  EXPECT_EQ(monitor.Look().temperature_c, 50);
}

TEST_F(MachineMonitorTest, IgnoresTheClockOfAVirtualMachine) {
  root_.Write("/proc/cpuinfo",
              "processor\t: 0\ncpu MHz\t\t: 2596.094\nflags\t\t: fpu vme hypervisor lahf_lm\n"
              "processor\t: 1\ncpu MHz\t\t: 2596.094\nflags\t\t: fpu vme hypervisor lahf_lm\n");
  EXPECT_EQ(MachineMonitor(root_.path()).Look().frequency_mhz, 0);
  // The frequency is used if the host passes the real one on.
  root_.Write(target::FrequencyFolder() + "/scaling_cur_freq", "3900000\n");
  EXPECT_EQ(MachineMonitor(root_.path()).Look().frequency_mhz, 3900);
}

TEST_F(MachineMonitorTest, MissingInformationGivesZeros) {
  MachineMonitor monitor(root_.path());
  const record::MachineState state = monitor.Look();
  EXPECT_EQ(state.frequency_mhz, 0);
  EXPECT_EQ(state.temperature_c, 0);
  EXPECT_EQ(state.load, 0);
  EXPECT_EQ(state.steal, 0);
}

TEST_F(MachineMonitorTest, StealAndLoadCoverTheIntervalBetweenReadings) {
  WriteStat(0, 0, 0);
  MachineMonitor monitor(root_.path());
  EXPECT_EQ(monitor.Look(100, 10).steal, 0) << "there is no earlier reading";
  // Two seconds on two CPUs are 400 ticks. The host took 40; 300 were used, 200 of them by this
  // process.
  WriteStat(300, 60, 40);
  const record::MachineState state = monitor.Look(102, 12);
  EXPECT_NEAR(state.steal, 0.1, 1e-9);
  EXPECT_NEAR(state.load, 0.5, 1e-9);
  // After a quiet second there is no steal, but the load of others is averaged over the last
  // minute.
  WriteStat(400, 160, 40);
  const record::MachineState later = monitor.Look(103, 13);
  EXPECT_EQ(later.steal, 0);
  EXPECT_NEAR(later.load, 1.0 / 3, 1e-9);
}

TEST(ParseTest, NonsenseGivesZeros) {
  EXPECT_EQ(ParseCpuTimes("").total, 0);
  EXPECT_EQ(ParseCpuTimes("cpu x y z").total, 0);
  EXPECT_EQ(ParseCpuTimes("cpu").total, 0);
  EXPECT_EQ(ParseMegahertz("cpu MHz"), 0);
  EXPECT_EQ(ParseMegahertz("cpu MHz : fast"), 0);
}

using ::testing::HasSubstr;

class ThrottleWatchTest : public ::testing::Test {
 protected:
  // Writes in place, because the watch has the file open.
  void Write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.path() + path;
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

  const TemporaryFolder root_;
};

TEST_F(ThrottleWatchTest, HasNoSourcesOnAMachineThatHidesThem) {
  ThrottleWatch watch(root_.path());
  EXPECT_EQ(watch.sources(), 0);
  EXPECT_EQ(watch.Reason(), "");
}

TEST_F(ThrottleWatchTest, AHotZoneCountsUntilItIsCooler) {
  WriteZone();
  ThrottleWatch watch(root_.path());
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
  ThrottleWatch watch(root_.path());
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
  ThrottleWatch watch(root_.path());
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
