#include "common/base/machine_load.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_root.h"

namespace hone {
namespace {

using ::testing::HasSubstr;

class MachineLoadTest : public ::testing::Test {
 protected:
  MachineLoad Load() const { return CheckLoad(root_.path()).value_or(MachineLoad()); }

  FakeRoot root_;
};

TEST_F(MachineLoadTest, AQuietMachineHasNoAdvice) {
  EXPECT_FALSE(CheckLoad(root_.path()).has_value()) << "the system does not report it";
  root_.Write("/proc/loadavg", "0.10 1.0 1.0 2/300 12\n");
  root_.AddProcess(20, "backup", "R");
  EXPECT_EQ(Load().finding, "0.10");
  EXPECT_FALSE(Load().disturbs);
}

TEST_F(MachineLoadTest, NamesTheProgramsThatLoadTheMachine) {
  root_.Write("/proc/loadavg", "3.75 1.0 1.0 2/300 12\n");
  root_.AddProcess(10, "bash", "S");
  root_.AddProcess(20, "it's) R", "R");
  root_.AddProcess(30, "cc1plus", "SRR");
  root_.AddProcess(40, "hone-server", "RR");
  root_.AddProcess(1, "systemd", "RRRR");
  root_.AddProcess(50, "kworker", "RRRR");
  EXPECT_THAT(Load().advice, HasSubstr("stop them while tuning: cc1plus (process 30), "
                                       "it?s??R (process 20)"));
  for (int i = 0; i < 6; ++i) root_.AddProcess(100 + 10 * i, "more", "R");
  EXPECT_THAT(Load().advice, HasSubstr(" and 3 more"));
}

// The kernel keeps 15 characters of a name.
TEST_F(MachineLoadTest, LongNamesOfProgramsAreNotCut) {
  root_.Write("/proc/loadavg", "3.75 1.0 1.0 2/300 12\n");
  root_.AddProcess(20, "image_converter", "R");
  const auto words = [&](const std::vector<std::string>& list) {
    std::string line;
    for (const std::string& word : list) line += word + '\0';
    root_.Write("/proc/20/cmdline", line);
  };
  words({"/opt/my tools/image_converter_daemon", "--all"});
  EXPECT_THAT(Load().advice, HasSubstr("image_converter_daemon (process 20)"));
  words({"image_converter_2: idle /x"});
  EXPECT_THAT(Load().advice, HasSubstr("image_converter_2: (process 20)"));
  words({"/usr/bin/python3", "/opt/image_converter_all.py"});
  EXPECT_THAT(Load().advice, HasSubstr("image_converter_all.py (process 20)"));
  // The process may have given itself the name.
  for (const char* const other : {"/usr/bin/python3", "", "/", "/opt/image_converter_x/run"}) {
    words({other});
    EXPECT_THAT(Load().advice, HasSubstr("image_converter (process 20)")) << other;
  }
}

TEST_F(MachineLoadTest, ProgramsThatHaveEndedDisturbNothing) {
  root_.Write("/proc/loadavg", "3.75 1.0 1.0 2/300 12\n");
  root_.AddProcess(10, "bash", "S");
  EXPECT_FALSE(Load().disturbs);
  EXPECT_EQ(Load().finding, "3.75, of programs that have ended");
  EXPECT_EQ(Load().advice, "");
}

}  // namespace
}  // namespace hone
