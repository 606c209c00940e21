#include "client/cli/quiet_check.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::HasSubstr;

class QuietCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/hone_quiet_XXXXXX";
    root_ = mkdtemp(name);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  // Adds a process whose threads are in these states.
  void Process(int pid, const std::string& name, const std::string& states) {
    const std::string folder = "/proc/" + std::to_string(pid);
    for (size_t i = 0; i < states.size(); ++i) {
      const std::string thread = std::to_string(pid + static_cast<int>(i));
      const std::string line = thread + " (" + name + ") " + states[i] +
                               (name == "kworker" ? " 2" : " 1") +
                               " 1342 1342 0 -1 4194304 52059 0 0 0 483 30 0 0 30 10 1 0 193429\n";
      if (i == 0) Write(folder + "/stat", line);
      Write(folder + "/task/" + thread + "/stat", line);
    }
  }
  // Returns the check with this name, or one with the name "missing".
  HealthCheck Find(const std::string& name) const {
    for (const HealthCheck& check : CheckQuiet(root_)) {
      if (check.name == name) return check;
    }
    return {.name = "missing"};
  }
  std::string root_;
};

TEST_F(QuietCheckTest, NoWarningsWithoutInformation) {
  const std::vector<HealthCheck> checks = CheckQuiet(root_);
  ASSERT_EQ(checks.size(), 1u);
  EXPECT_EQ(checks[0].state, HealthCheck::State::kOk);
  EXPECT_THAT(checks[0].finding, HasSubstr("not visible"));
}

TEST_F(QuietCheckTest, EachDisturbanceComesWithAdvice) {
  Write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n");
  Write("/sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
  Write("/sys/devices/system/cpu/isolated", "\n");
  Write("/proc/stat", "cpu  700 0 200 1000 0 0 0 100 0 0\ncpu0 1\n");
  Write("/proc/loadavg", "1.75 1.0 1.0 2/300 12\n");
  Process(30, "cc1plus", "R");
  Write("/sys/kernel/mm/transparent_hugepage/enabled", "always madvise [never]\n");
  EXPECT_THAT(Find("governor").advice, HasSubstr("cpupower"));
  EXPECT_THAT(Find("turbo").advice, HasSubstr("no_turbo"));
  EXPECT_THAT(Find("isolated cores").advice, HasSubstr("isolcpus"));
  EXPECT_THAT(Find("steal").finding, HasSubstr("10.0 %"));
  EXPECT_THAT(Find("steal").advice, HasSubstr("quarantined"));
  EXPECT_THAT(Find("load").advice, HasSubstr("stop them while tuning: cc1plus"));
  EXPECT_THAT(Find("huge pages").advice, HasSubstr("madvise"));
}

TEST_F(QuietCheckTest, APrepareScriptHasTheCommandsOfTheWarnings) {
  Write("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n");
  Write("/sys/devices/system/cpu/cpufreq/boost", "1\n");
  Write("/proc/loadavg", "1.75 1.0 1.0 2/300 12\n");
  Process(30, "cc1plus", "R");
  const std::string script = PrepareScript(root_);
  EXPECT_THAT(script, HasSubstr("\n  echo performance > \"$governor\"\n"));
  EXPECT_THAT(script, HasSubstr("\necho 0 > /sys/devices/system/cpu/cpufreq/boost\n"));
  EXPECT_THAT(script, HasSubstr("# load: 1.75\n# other programs"));
  EXPECT_THAT(script, HasSubstr("\necho 'load: other programs")) << "also seen in | sudo sh";
  Write("/prepare.sh", script);
  EXPECT_EQ(system(("sh -n " + root_ + "/prepare.sh").c_str()), 0) << "it must be valid";
}

TEST_F(QuietCheckTest, NamesTheProgramsThatLoadTheMachine) {
  Write("/proc/loadavg", "3.75 1.0 1.0 2/300 12\n");
  Process(10, "bash", "S");
  Process(20, "it's) R", "R");
  Process(30, "cc1plus", "SRR");
  Process(40, "hone-server", "RR");
  Process(1, "systemd", "RRRR");
  Process(50, "kworker", "RRRR");
  EXPECT_THAT(Find("load").advice, HasSubstr("stop them while tuning: cc1plus (process 30), "
                                             "it?s??R (process 20)"));
  for (int i = 0; i < 6; ++i) Process(100 + 10 * i, "more", "R");
  EXPECT_THAT(Find("load").advice, HasSubstr(" and 3 more"));
}

// The kernel keeps 15 characters of a name.
TEST_F(QuietCheckTest, LongNamesOfProgramsAreNotCut) {
  Write("/proc/loadavg", "3.75 1.0 1.0 2/300 12\n");
  Process(20, "image_converter", "R");
  const auto words = [&](const std::vector<std::string>& list) {
    std::string line;
    for (const std::string& word : list) line += word + '\0';
    Write("/proc/20/cmdline", line);
  };
  words({"/opt/my tools/image_converter_daemon", "--all"});
  EXPECT_THAT(Find("load").advice, HasSubstr("image_converter_daemon (process 20)"));
  words({"image_converter_2: idle /x"});
  EXPECT_THAT(Find("load").advice, HasSubstr("image_converter_2: (process 20)"));
  words({"/usr/bin/python3", "/opt/image_converter_all.py"});
  EXPECT_THAT(Find("load").advice, HasSubstr("image_converter_all.py (process 20)"));
  // The process may have given itself the name.
  for (const char* const other : {"/usr/bin/python3", "", "/", "/opt/image_converter_x/run"}) {
    words({other});
    EXPECT_THAT(Find("load").advice, HasSubstr("image_converter (process 20)")) << other;
  }
}

TEST_F(QuietCheckTest, ProgramsThatHaveEndedDisturbNothing) {
  Write("/proc/loadavg", "3.75 1.0 1.0 2/300 12\n");
  Process(10, "bash", "S");
  EXPECT_EQ(Find("load").state, HealthCheck::State::kOk);
  EXPECT_EQ(Find("load").finding, "3.75, of programs that have ended");
  EXPECT_EQ(NoiseNow(root_), "");
}

TEST_F(QuietCheckTest, TuningAndDoctorGiveTheSameWarning) {
  Write("/proc/loadavg", "1.75 1.0 1.0 2/300 12\n");
  Process(30, "cc1plus", "R");
  EXPECT_THAT(NoiseNow(root_), HasSubstr(Find("load").advice));
  Write("/proc/loadavg", "0.10 1.0 1.0 2/300 12\n");
  EXPECT_EQ(NoiseNow(root_), "");
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
  for (const HealthCheck& check : CheckQuiet(root_)) {
    EXPECT_EQ(check.state, HealthCheck::State::kOk) << check.name;
    EXPECT_EQ(check.advice, "") << check.name;
  }
  Write("/sys/devices/system/cpu/cpufreq/boost", "1\n");
  EXPECT_THAT(Find("turbo").advice, HasSubstr("boost"));
}

}  // namespace
}  // namespace hone::cli
