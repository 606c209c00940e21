#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/task/job_harness.h"

namespace hone::task {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class WaitReasonTest : public ::testing::Test, protected JobHarness {
 protected:
  // Lets time pass for the server, while `device` calls every tenth of a second unless it is gone.
  void Pass(absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(100)) Step();
  }
  std::string Reason(const std::string& id) { return Get(id)->wait_reason; }
};

TEST_F(WaitReasonTest, ASilentWorkerIsNamedAfterSecondsAndUntilItCallsAgain) {
  Step();
  const std::string id = Create(Spec(1'000'000));
  Pass(absl::Seconds(10));
  EXPECT_EQ(Reason(id), "");
  device_is_gone = true;
  Pass(absl::Seconds(4));
  EXPECT_EQ(Reason(id), "") << "it may be busy";
  Pass(absl::Seconds(3));
  EXPECT_THAT(Reason(id), AllOf(StartsWith("no worker runs target t: device was last seen at "),
                                HasSubstr("; start hone-worker on the machine of device again")));
  device_is_gone = false;
  Pass(absl::Seconds(2));
  EXPECT_EQ(Reason(id), "");
}

TEST_F(WaitReasonTest, ASilentWorkerIsNamedIfTheJobWaitsForItsLease) {
  FakeDevice other("1", "other");
  others = {&other};
  const std::string id = Create(Spec(20));
  for (int i = 0; i < 3; ++i) Step(0);
  ASSERT_FALSE(device.held.empty());
  device_is_gone = true;
  Pass(absl::Seconds(4));
  EXPECT_EQ(Reason(id), "") << "it may be busy";
  Pass(absl::Seconds(3));
  EXPECT_THAT(Reason(id), AllOf(StartsWith("worker device has not answered since "),
                                HasSubstr("another worker gets its work")));
  EXPECT_EQ(RunToEnd(id)->state, JobState::kDone) << "the other worker measures it";
}

TEST_F(WaitReasonTest, ASilentWorkerIsNamedWhileAnotherGoesOn) {
  FakeDevice other("1", "other");
  others = {&other};
  const std::string id = Create(Spec(1'000'000));
  for (int i = 0; i < 3; ++i) Step(0);
  const size_t held = device.held.size();
  ASSERT_GT(held, 1u);
  device_is_gone = true;
  Pass(absl::Seconds(7));
  EXPECT_EQ(Reason(id), "");
  EXPECT_THAT(Get(id)->phase, StartsWith(absl::StrCat("measuring without ", held, " candidates: ",
                                                      "worker device has not answered since ")));
  device_is_gone = false;
  Pass(absl::Seconds(2));
  EXPECT_EQ(Get(id)->phase, "");
}

TEST_F(WaitReasonTest, ADrainedWorkerIsNamed) {
  Step();
  const std::string id = Create(Spec(1'000'000));
  Pass(absl::Seconds(6));
  ASSERT_TRUE(fleet->Drain("device", /*resume=*/false).ok());
  Pass(absl::Seconds(2));
  EXPECT_EQ(Reason(id),
            "no worker runs target t: device is drained; \"hone workers resume device\" "
            "gives it work again; a job that waits for 60 s fails");
  ASSERT_TRUE(jobs->Cancel(id, /*confirm=*/false).ok());
  Pass(absl::Seconds(1));
  EXPECT_EQ(Reason(id), "") << "it has ended";
}

TEST_F(WaitReasonTest, AdviceIsGivenOnceAndNamesItsWorker) {
  FakeDevice other("1", "other");
  others = {&other};
  Step();
  const std::string id = Create(Spec(1'000'000));
  Pass(absl::Seconds(1));
  others.clear();
  fleet->Flag("device",
              "an administrator removed it; \"hone workers resume device\" admits it again");
  Pass(absl::Seconds(7));
  EXPECT_THAT(Reason(id),
              AllOf(StartsWith("no worker runs target t: device is refused: an administrator "
                               "removed it; \"hone workers resume device\" admits it again, other "
                               "was last seen at "),
                    HasSubstr("; start hone-worker on the machine of other again"),
                    Not(HasSubstr("gives it work again"))));
}

// After a restart, workers have some seconds to call.
TEST_F(WaitReasonTest, ARestartedServerGivesWorkersTimeToCall) {
  Step();
  const std::string id = Create(Spec(1'000'000));
  Pass(absl::Seconds(1));
  device_is_gone = true;
  Restart();
  Pass(absl::Seconds(4));
  EXPECT_EQ(Reason(id), "");
  Pass(absl::Seconds(3));
  EXPECT_EQ(Reason(id),
            "no worker runs target t; start hone-worker on such a machine; a job that "
            "waits for 60 s fails");
}

}  // namespace
}  // namespace hone::task
