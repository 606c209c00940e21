#include "worker/agent/machine.h"

#include <stdlib.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/target/host.h"
#include "common/target/target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_root.h"
#include "tests/fakes/kept_log.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::agent {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// A folder with a hone-runner that a script replaces.
class MachineTest : public ::testing::Test {
 protected:
  void WriteRunner(const std::string& script) {
    const std::string path = folder_ / "hone-runner";
    std::ofstream(path) << "#!/bin/sh\ncd " << folder_.path() << "\n" << script;
    chmod(path.c_str(), 0700);
  }
  absl::StatusOr<v1::Capabilities> Describe() {
    return DescribeMachine({.program_dir = folder_.path(),
                            .state_dir = folder_.path(),
                            .runner = {folder_ / "hone-runner"}});
  }

  const TemporaryFolder folder_;
};

TEST_F(MachineTest, WaitsForTheTimingLock) {
  WriteRunner(
      "if [ -e tried ]; then echo '{\"gflops_all_cores\": 5}'; exit; fi\n"
      "touch tried\necho 'the timing lock is not free' >&2\nexit 75\n");
  HONE_ASSERT_OK_AND_ASSIGN(const v1::Capabilities machine, Describe());
  EXPECT_EQ(machine.peak_gflops(), 5);
}

TEST_F(MachineTest, ThePeakIsKeptForADay) {
  // The peak is the number of measurements.
  WriteRunner(
      "echo >> count\n"
      "echo \"{\\\"steady\\\": true, \\\"calibration\\\": \\\"\\\", \\\"gflops_all_cores\\\": "
      "$(wc -l < count)}\"\n");
  const auto peak = [this] {
    const absl::StatusOr<v1::Capabilities> machine = Describe();
    EXPECT_THAT(machine, IsOk());
    return machine.ok() ? machine->peak_gflops() : 0;
  };
  EXPECT_EQ(peak(), 1);
  EXPECT_EQ(peak(), 1);
  double measurements = 1;
  for (const auto age : {std::chrono::hours(25), std::chrono::hours(-1)}) {
    for (const auto& file : std::filesystem::directory_iterator(folder_.path())) {
      if (file.path().extension() != ".json") continue;
      std::filesystem::last_write_time(file, std::filesystem::file_time_type::clock::now() - age);
    }
    EXPECT_EQ(peak(), ++measurements) << age.count();
    EXPECT_EQ(peak(), measurements) << "the time of the file is right again";
  }
}

TEST_F(MachineTest, TheLogTellsOfAMeasurementOnlyIfThereIsOne) {
  WriteRunner("echo '{\"steady\": true, \"calibration\": \"\", \"gflops_all_cores\": 5}'\n");
  for (const bool is_known : {false, true}) {
    const KeptLog log;
    EXPECT_THAT(Describe(), IsOk());
    const auto tells = HasSubstr("measuring this machine");
    if (is_known) {
      EXPECT_THAT(log.text(), Not(tells));
    } else {
      EXPECT_THAT(log.text(), tells);
    }
  }
}

// What the runner measured becomes part of the target, but not of its key.
TEST_F(MachineTest, TheTargetHasTheCalibration) {
  WriteRunner("echo '{\"calibration\": \"fma:0.25,fork:900\"}'\n");
  HONE_ASSERT_OK_AND_ASSIGN(const v1::Capabilities machine, Describe());
  HONE_ASSERT_OK_AND_ASSIGN(const target::Target target,
                            target::Target::FromText(machine.target()));
  EXPECT_EQ(target.calibration, (target::Calibration{.fma = 0.25, .fork = 900}));
  EXPECT_EQ(machine.target_key(), target::DetectHost().Key());
}

TEST_F(MachineTest, AnImpossibleCalibrationIsRefused) {
  WriteRunner("echo '{\"calibration\": \"fma:0.25,fork:1e99\", \"gflops_all_cores\": 5}'\n");
  const KeptLog log;
  HONE_ASSERT_OK_AND_ASSIGN(const v1::Capabilities machine, Describe());
  EXPECT_EQ(machine.target(), target::DetectHost().ToText());
  EXPECT_EQ(machine.peak_gflops(), 5);
  EXPECT_THAT(log.text(), HasSubstr("fork=1e99 ns is impossible"));
}

TEST_F(MachineTest, ARunnerThatFailsIsNamed) {
  WriteRunner("echo broken >&2\nexit 1\n");
  const absl::Status status = Describe().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_NE(status.message().find("broken"), std::string::npos) << status;
}

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
    EXPECT_THAT(findings, IsOk());
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
