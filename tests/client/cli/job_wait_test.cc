#include "client/cli/job_wait.h"

#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/run_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class JobWaitTest : public ::testing::Test {
 protected:
  JobWaitTest() {
    job_.id = "12";
    job_.state = client::JobState::kRunning;
  }

  FakeClock clock_;
  client::Job job_;
  JobWait wait_{&clock_, /*private_worker=*/false};
};

TEST_F(JobWaitTest, ExplainsAWaitOnce) {
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_THAT(wait_.phase(), IsEmpty());
  job_.wait_reason = "no worker runs target t: pi-07 was stopped";
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_EQ(wait_.phase(), "waiting for a worker");
  EXPECT_EQ(wait_.TakeMessage().value_or(""),
            "job 12 waits: no worker runs target t: pi-07 was stopped");
  job_.state = client::JobState::kConfirming;
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_EQ(wait_.phase(), "waiting for a worker");
  EXPECT_FALSE(wait_.TakeMessage().has_value()) << "it was explained before";
  job_.wait_reason.clear();
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_THAT(wait_.phase(), IsEmpty());
}

TEST_F(JobWaitTest, APrivateWorkerIsNotExplained) {
  JobWait wait(&clock_, /*private_worker=*/true);
  job_.wait_reason = "no worker runs target t";
  wait.Look(job_, client::JobNews::kChanged);
  EXPECT_THAT(wait.phase(), IsEmpty());
  EXPECT_FALSE(wait.TakeMessage().has_value());
}

TEST(StoppingTextTest, PromisesNoConfirmationWithoutAWorker) {
  EXPECT_EQ(StoppingText(1, /*needs_worker=*/false),
            "stopping: confirming the finalists; Ctrl-C again skips this");
  EXPECT_EQ(StoppingText(1, /*needs_worker=*/true),
            "stopping: no worker is there to confirm the finalists");
  EXPECT_EQ(StoppingText(2, /*needs_worker=*/true), "stopping now");
}

TEST(TimeToStartTextTest, TellsWhatTookTheTime) {
  EXPECT_EQ(TimeToStartText(10'000, 1000), "");
  EXPECT_THAT(TimeToStartText(3000, 2400),
              AllOf(HasSubstr("took 2.4 s to start"), HasSubstr("1.0 s are left")));
}

TEST_F(JobWaitTest, ReportsAnUnreachableServerUntilItReturns) {
  wait_.Look(job_, client::JobNews::kChanged);
  const std::string since = FormatTime(absl::ToUnixMillis(clock_.Now()));
  wait_.Look(job_, client::JobNews::kNoServer);
  EXPECT_EQ(wait_.phase(), "no server since " + since);
  EXPECT_THAT(wait_.TakeMessage().value_or(""), HasSubstr("job 12 continues"));
  clock_.Advance(absl::Seconds(30));
  wait_.Look(job_, client::JobNews::kNoServer);
  EXPECT_EQ(wait_.phase(), "no server since " + since);
  EXPECT_FALSE(wait_.TakeMessage().has_value());
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_THAT(wait_.phase(), IsEmpty());
}

TEST(CheckNotCancelledTest, DoesNotGuessWhoCancelledTheJob) {
  FollowedJob followed;
  followed.job.id = "12";
  followed.job.state = client::JobState::kDone;
  EXPECT_TRUE(CheckNotCancelled(followed).ok());
  followed.job.state = client::JobState::kCancelled;
  EXPECT_EQ(CheckNotCancelled(followed).message(), "job 12 was cancelled after 0 trials");
}

TEST(NotCancelledErrorTest, IsAnInterruptionThatNamesTheJob) {
  const absl::Status error =
      NotCancelledError("12", absl::UnavailableError("cannot reach the server at x:1"));
  EXPECT_EQ(ExitCodeFor(error), kExitInterrupted);
  EXPECT_THAT(error.message(),
              AllOf(HasSubstr("job 12 could not be cancelled (cannot reach the server at x:1"),
                    HasSubstr("hone jobs watch 12"), HasSubstr("hone jobs cancel 12")));
}

TEST(LeftErrorTest, SaysWhatBecomesOfTheJob) {
  const absl::Status watched = LeftError("12", OnInterrupt::kLeave);
  EXPECT_EQ(ExitCodeFor(watched), kExitInterrupted);
  EXPECT_THAT(watched.message(), AllOf(HasSubstr("job 12 continues: hone jobs watch 12"),
                                       HasSubstr("hone jobs cancel 12 ends it")));
  const absl::Status cancelled = LeftError("12", OnInterrupt::kLeaveCancelled);
  EXPECT_EQ(ExitCodeFor(cancelled), kExitInterrupted);
  EXPECT_THAT(cancelled.message(), HasSubstr("job 12 is being cancelled on the server"));
}

TEST(DisturbedTextTest, CountsTheMeasurements) {
  client::Job job;
  EXPECT_EQ(DisturbedText(job), "");
  job.disturbed = 1;
  job.disturbance = "repeated runs differed";
  EXPECT_EQ(DisturbedText(job),
            "other work disturbed 1 measurement; the last: repeated runs differed");
  job.disturbed = 3;
  EXPECT_THAT(DisturbedText(job), HasSubstr("3 measurements"));
}

TEST(FailuresHintTest, AppearsOnlyIfACandidateFailed) {
  client::Job job;
  job.id = "12";
  EXPECT_EQ(FailuresHint(job), "");
  job.outcomes = {{"ok", 3}};
  EXPECT_EQ(FailuresHint(job), "");
  job.outcomes["crash"] = 1;
  EXPECT_THAT(FailuresHint(job), HasSubstr("hone records query --job 12"));
}

}  // namespace
}  // namespace hone::cli
