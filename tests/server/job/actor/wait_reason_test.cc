#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
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
  EXPECT_EQ(Get(id)->phase.kind, PhaseKind::kMeasuringWithout);
  EXPECT_EQ(Get(id)->phase.done, static_cast<int64_t>(held));
  EXPECT_THAT(Get(id)->phase.detail, StartsWith("worker device has not answered since "));
  device_is_gone = false;
  Pass(absl::Seconds(2));
  EXPECT_EQ(Get(id)->phase, JobPhase());
}

TEST_F(WaitReasonTest, ADrainedWorkerIsNamed) {
  Step();
  const std::string id = Create(Spec(1'000'000));
  Pass(absl::Seconds(6));
  ASSERT_THAT(fleet->Drain("device", /*resume=*/false), IsOk());
  Pass(absl::Seconds(2));
  EXPECT_THAT(Reason(id),
              StartsWith("no worker runs target t: device is drained; "
                         "an administrator gives it work again with \"hone workers resume "
                         "device\"; the job fails if this lasts until "));
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  Pass(absl::Seconds(1));
  EXPECT_EQ(Reason(id), "") << "it has ended";
}

TEST_F(WaitReasonTest, ATimeLimitIsNamedIfItEndsTheJobFirst) {
  Step();
  JobSpec spec = Spec(1'000'000);
  spec.max_time = absl::Minutes(1);
  const std::string id = Create(std::move(spec));
  ASSERT_THAT(fleet->Drain("device", /*resume=*/false), IsOk());
  Pass(absl::Seconds(7));
  EXPECT_THAT(Reason(id), AllOf(HasSubstr("; the job's time is over at "),
                                Not(HasSubstr("fails if this lasts"))));
}

// Its confirmation has a limit, but nothing is confirmed that could end it then.
TEST_F(WaitReasonTest, AConfirmationWithoutATimeLimitNamesWhenItFails) {
  Step();
  const std::string id = Create(Spec(20));
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
  ASSERT_EQ(Get(id)->state, JobState::kConfirming);
  ASSERT_THAT(fleet->Drain("device", /*resume=*/false), IsOk());
  Pass(absl::Seconds(7));
  EXPECT_THAT(Reason(id), HasSubstr("; the job fails if this lasts until "));
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
  EXPECT_THAT(Reason(id),
              StartsWith("no worker runs target t; unless one is starting, start hone-worker on "
                         "such a machine; the job fails if this lasts until "));
}

// One rule for all workers that take no work.
TEST_F(WaitReasonTest, AJobWaitsAsLongForALostWorkerAsForADrainedOne) {
  for (const bool lost : {false, true}) {
    Step();
    JobSpec spec = Spec(1'000'000, absl::StrCat(lost));
    if (lost) spec.workload = "fake other 12";
    const std::string id = Create(std::move(spec));
    Pass(absl::Seconds(6));
    device_is_gone = lost;
    if (!lost) {
      ASSERT_THAT(fleet->Drain("device", /*resume=*/false), IsOk());
    }
    Pass(absl::Seconds(8));
    const std::string reason = Reason(id);
    EXPECT_THAT(reason, HasSubstr("; the job fails if this lasts until "));
    Pass(options.wait_limit - absl::Seconds(15));
    EXPECT_EQ(Reason(id), reason) << "its end does not move";
    EXPECT_FALSE(HasEnded(Get(id)->state));
    Pass(absl::Seconds(14));
    const auto job = Get(id);
    EXPECT_EQ(job->state, JobState::kFailed);
    EXPECT_THAT(job->error,
                AllOf(StartsWith("it waited 600 s for a worker: no worker runs target t"),
                      EndsWith("; \"hone jobs resume " + id + "\" continues it")));
    device_is_gone = false;
    if (!lost) {
      ASSERT_THAT(fleet->Drain("device", /*resume=*/true), IsOk());
    }
    Pass(absl::Seconds(1));
    jobs->Resume(id, 0, absl::ZeroDuration(), [](const SnapshotOr& s) { EXPECT_THAT(s, IsOk()); });
    Pass(absl::Seconds(10));
    EXPECT_EQ(Get(id)->state, JobState::kRunning);
    EXPECT_EQ(Reason(id), "");
    ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
    Pass(absl::Seconds(1));
  }
}

// The time of a wait begins again when a worker has taken work.
TEST_F(WaitReasonTest, AWorkerThatComesBackInTimeSavesItsJob) {
  Step();
  const std::string id = Create(Spec(1'000'000));
  for (int i = 0; i < 2; ++i) {
    device_is_gone = true;
    Pass(options.wait_limit - absl::Seconds(10));
    device_is_gone = false;
    Pass(absl::Seconds(3));
    EXPECT_EQ(Get(id)->state, JobState::kRunning);
    EXPECT_EQ(Reason(id), "");
  }
}

}  // namespace
}  // namespace hone::job
