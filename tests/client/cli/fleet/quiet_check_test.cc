#include "client/cli/fleet/quiet_check.h"

#include <stdlib.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_root.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

class QuietCheckTest : public ::testing::Test {
 protected:
  void Write(const std::string& path, const std::string& text) const { root_.Write(path, text); }
  // Returns the check with this name, or one with the name "missing".
  HealthCheck Find(const std::string& name) const {
    for (const HealthCheck& check : CheckQuiet(root_.path())) {
      if (check.name == name) return check;
    }
    return {.name = "missing"};
  }
  FakeRoot root_;
};

TEST_F(QuietCheckTest, NoWarningsWithoutInformation) {
  const std::vector<HealthCheck> checks = CheckQuiet(root_.path());
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].state, HealthCheck::State::kOk);
  EXPECT_THAT(checks[0].finding, HasSubstr("not visible"));
}

TEST_F(QuietCheckTest, EachDisturbanceComesWithAdvice) {
  GoldenOfTest golden;
  Write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n");
  Write("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
  Write("/sys/devices/system/cpu/isolated", "\n");
  Write("/proc/stat", "cpu  700 0 200 1000 0 0 0 100 0 0\ncpu0 1\n");
  Write("/proc/loadavg", "1.75 1.0 1.0 2/300 12\n");
  root_.AddProcess(30, "cc1plus", "R");
  Write("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  golden.Add(Find("governor").advice);
  golden.Add(Find("turbo").advice);
  golden.Add(Find("isolated cores").advice);
  golden.Add(Find("steal").finding);
  golden.Add(Find("steal").advice);
  golden.Add(Find("load").advice);
  golden.Add(Find("huge pages").advice);
}

TEST_F(QuietCheckTest, APrepareScriptHasTheCommandsOfTheWarnings) {
  Write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n");
  Write("/sys/devices/system/cpu/cpufreq/boost", "1\n");
  Write("/proc/loadavg", "1.75 1.0 1.0 2/300 12\n");
  root_.AddProcess(30, "cc1plus", "R");
  const std::string script = PrepareScript(root_.path());
  GoldenOfTest().Add(script);
  Write("/prepare.sh", script);
  EXPECT_EQ(system(("sh -n " + root_.path() + "/prepare.sh").c_str()), 0) << "it must be valid";
}

TEST_F(QuietCheckTest, TuningAndDoctorGiveTheSameWarning) {
  Write("/proc/loadavg", "1.75 1.0 1.0 2/300 12\n");
  root_.AddProcess(30, "cc1plus", "R");
  EXPECT_THAT(NoiseNow(root_.path()), HasSubstr(Find("load").advice));
  Write("/proc/loadavg", "0.10 1.0 1.0 2/300 12\n");
  EXPECT_EQ(NoiseNow(root_.path()), "");
}

TEST_F(QuietCheckTest, WarnsOfInterruptsOnIsolatedCores) {
  Write("/sys/devices/system/cpu/isolated", "2-3,33\n");
  Write("/proc/irq/default_smp_affinity", "ffffffff,fffffffb\n");
  EXPECT_EQ(Find("interrupts").finding, "may go to the isolated cores 3,33");
  EXPECT_THAT(Find("interrupts").advice, HasSubstr("smp_affinity"));
  Write("/proc/irq/default_smp_affinity", "FFFFFFFD,FFFFFFF3\n");
  EXPECT_EQ(Find("interrupts").advice, "");
  Write("/sys/devices/system/cpu/isolated", "\n");
  EXPECT_EQ(Find("interrupts").name, "missing") << "there are no isolated cores";
}

TEST_F(QuietCheckTest, QuietMachineHasNoWarnings) {
  Write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  Write("/sys/devices/system/cpu/cpufreq/boost", "0\n");
  Write("/sys/devices/system/cpu/isolated", "2-3\n");
  Write("/proc/stat", "cpu  700 0 200 1000 0 0 0 1 0 0\n");
  Write("/proc/loadavg", "0.02 1.0 1.0 2/300 12\n");
  Write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  for (const HealthCheck& check : CheckQuiet(root_.path())) {
    EXPECT_EQ(check.state, HealthCheck::State::kOk) << check.name;
    EXPECT_EQ(check.advice, "") << check.name;
  }
  Write("/sys/devices/system/cpu/cpufreq/boost", "1\n");
  EXPECT_THAT(Find("turbo").advice, HasSubstr("boost"));
}

}  // namespace
}  // namespace hone::cli
