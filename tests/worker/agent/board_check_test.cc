#include "worker/agent/board_check.h"

#include <sys/stat.h>

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_root.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;

// A machine in a folder, whose hone-runner a script replaces.
class BoardCheckTest : public ::testing::Test {
 protected:
  void SetUp() override {
    root_.Write("/hone-runner", "#!/bin/sh\necho '{\"conditions\": []}'\n");
    chmod((root_.path() + "/hone-runner").c_str(), 0700);
  }
  // Returns the lines of --doctor.
  std::string Doctor() const {
    const auto findings = CheckBoard({root_.path() + "/hone-runner"}, root_.path(), root_.path());
    EXPECT_TRUE(findings.ok()) << findings.status();
    return findings.ok() ? ToText(*findings) : "";
  }

  FakeRoot root_;
};

TEST_F(BoardCheckTest, NamesTheProgramsThatDisturbMeasurements) {
  root_.Write("/proc/loadavg", "1.75 1.0 1.0 2/300 12\n");
  root_.AddProcess(30, "cc1plus", "R");
  EXPECT_THAT(Doctor(), HasSubstr("warning  load             1.75\n         -> other programs"));
  EXPECT_THAT(Doctor(), HasSubstr("cc1plus (process 30)"));
  root_.Write("/proc/loadavg", "0.10 1.0 1.0 2/300 12\n");
  EXPECT_THAT(Doctor(), HasSubstr("ok       load             0.10\n"));
}

}  // namespace
}  // namespace hone::agent
