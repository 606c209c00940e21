
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/phase_text.h"
#include "client/cli/tune/run_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

class JobWaitTest : public ::testing::Test {
 protected:
  JobWaitTest() {
    job_.set_id("12");
    job_.set_state(v1::JOB_STATE_RUNNING);
  }

  FakeClock clock_;
  v1::Job job_;
  JobWait wait_{&clock_, /*is_private=*/false};
};

TEST_F(JobWaitTest, ExplainsAWaitOnce) {
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_FALSE(wait_.phase().has_value());
  job_.set_wait_reason("no worker runs target t: pi-07 was stopped");
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_EQ(TextsOf(*wait_.phase()).full, "waiting for a worker");
  EXPECT_EQ(wait_.TakeMessage().value_or(""),
            "job 12 waits: no worker runs target t: pi-07 was stopped");
  job_.set_state(v1::JOB_STATE_CONFIRMING);
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_EQ(TextsOf(*wait_.phase()).full, "waiting for a worker");
  EXPECT_FALSE(wait_.TakeMessage().has_value()) << "it was explained before";
  job_.clear_wait_reason();
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_FALSE(wait_.phase().has_value());
}

TEST_F(JobWaitTest, AFullDiskIsExplained) {
  for (const bool is_private : {false, true}) {
    JobWait wait(&clock_, is_private);
    v1::Job job = job_;
    job.mutable_phase()->set_kind(v1::JobPhase::KIND_WAITING_FOR_SPACE);
    job.mutable_phase()->set_detail("store hone.db: the disk is full; free space");
    wait.Look(job, client::JobNews::kChanged);
    EXPECT_EQ(TextsOf(*wait.phase()).brief, "waiting for space on the server's disk");
    EXPECT_EQ(wait.TakeMessage().value_or(""),
              "the disk of the server's store is full, and job 12 continues when there is space "
              "again: store hone.db: the disk is full; free space");
    wait.Look(job, client::JobNews::kNone);
    EXPECT_FALSE(wait.TakeMessage().has_value());
    wait.Look(job_, client::JobNews::kChanged);
    EXPECT_FALSE(wait.phase().has_value());
  }
}

TEST_F(JobWaitTest, AServerWithoutItsDatabaseSaysSo) {
  job_.set_wait_reason("the server cannot reach its database; it tries again, and jobs wait");
  wait_.Look(job_, client::JobNews::kNoServer);
  EXPECT_THAT(wait_.TakeMessage().value_or(""),
              testing::HasSubstr(": the server cannot reach its database; it tries again, and jobs "
                                 "wait; job 12 continues when it is back"));
}

TEST_F(JobWaitTest, APrivateWorkerIsNotExplained) {
  JobWait wait(&clock_, /*is_private=*/true);
  job_.set_wait_reason("no worker runs target t");
  wait.Look(job_, client::JobNews::kChanged);
  EXPECT_FALSE(wait.phase().has_value());
  EXPECT_FALSE(wait.TakeMessage().has_value());
  wait.Look(job_, client::JobNews::kNoServer);
  GoldenOfTest().Add(WithoutTimes(TextsOf(*wait.phase()).full));
  EXPECT_FALSE(wait.TakeMessage().has_value()) << "a private server does not come back";
}

// The measurements in progress may give a first result, which is then confirmed.
TEST(StoppingTextTest, WithoutAResultItSaysWhatIsFinishedAndForHowLong) {
  GoldenOfTest golden;
  v1::Job job;
  golden.Add(StoppingText(1, job));
  job.mutable_request()->set_revalidate(1);
  golden.Add(StoppingText(1, job));
}

TEST(StoppingTextTest, PromisesNoConfirmationWithoutAWorker) {
  v1::Job job;
  job.set_trials(1);
  EXPECT_EQ(StoppingText(1, job),
            "stopping: confirming the finalists for at most 30 s; Ctrl-C again skips this");
  job.set_wait_reason("no worker runs target t");
  EXPECT_EQ(StoppingText(1, job),
            "stopping: the job waits for a worker; Ctrl-C again ends it at once");
  EXPECT_EQ(StoppingText(2, job), "stopping now");
}

TEST(CancellingTextTest, SaysHowToEndAtOnce) {
  v1::Job job;
  job.set_id("12");
  job.set_state(v1::JOB_STATE_RUNNING);
  EXPECT_EQ(CancellingText(job), "") << "there is nothing to confirm";
  job.set_trials(3);
  EXPECT_EQ(
      CancellingText(job),
      "job 12 ends when it has confirmed the finalists, within about 30 s; hone jobs cancel 12 "
      "--now ends it at once, and Ctrl-C ends only this wait");
  job.set_wait_reason("no worker runs target t");
  EXPECT_EQ(CancellingText(job), "");
  job.clear_wait_reason();
  job.set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(CancellingText(job), "");
}

TEST(CreationWaitTest, NamesTheTargetAndTheLimitOnce) {
  FakeClock clock;
  CreationWait wait(&clock, "board:7070", "arm-a76-4c-01234567");
  EXPECT_FALSE(wait.TakeMessage(true).has_value()) << "most jobs are created at once";
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(wait.TakeMessage(true).value_or(""),
            "creating the job; if no worker of target arm-a76-4c-01234567 is registered, the "
            "server waits for one, at most 15 s");
  EXPECT_FALSE(wait.TakeMessage(true).has_value());
  CreationWait native(&clock, "board:7070", "native");
  clock.Advance(absl::Seconds(1));
  GoldenOfTest().Add(native.TakeMessage(true).value_or(""));
}

// A server that cannot be reached creates no job.
TEST(CreationWaitTest, FirstThereMustBeAConnection) {
  FakeClock clock;
  CreationWait wait(&clock, "localhost:9", "native");
  EXPECT_FALSE(wait.TakeMessage(false).has_value());
  clock.Advance(absl::Seconds(1));
  EXPECT_EQ(wait.TakeMessage(false).value_or(""), "connecting to localhost:9");
  EXPECT_FALSE(wait.TakeMessage(false).has_value());
  EXPECT_FALSE(wait.TakeMessage(true).has_value()) << "the server creates it in a moment";
  clock.Advance(absl::Seconds(1));
  GoldenOfTest().Add(wait.TakeMessage(true).value_or(""));
  EXPECT_FALSE(wait.TakeMessage(true).has_value());
}

TEST(TimeToStartTextTest, TellsWhatTookTheTime) {
  GoldenOfTest golden;
  EXPECT_EQ(TimeToStartText(10'000, 1000), "");
  golden.Add(TimeToStartText(4000, 2400));
  golden.Add(TimeToStartText(3000, 2400));
}

TEST_F(JobWaitTest, ReportsAnUnreachableServerUntilItReturns) {
  wait_.Look(job_, client::JobNews::kChanged);
  const std::string since = FormatTime(absl::ToUnixMillis(clock_.Now()));
  wait_.Look(job_, client::JobNews::kNoServer);
  EXPECT_EQ(TextsOf(*wait_.phase()).full, "no server since " + since);
  GoldenOfTest().Add(WithoutTimes(wait_.TakeMessage().value_or("")));
  clock_.Advance(absl::Seconds(30));
  wait_.Look(job_, client::JobNews::kNoServer);
  EXPECT_EQ(TextsOf(*wait_.phase()).full, "no server since " + since);
  EXPECT_FALSE(wait_.TakeMessage().has_value());
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_FALSE(wait_.phase().has_value());
}

TEST(CheckNotCancelledTest, DoesNotGuessWhoCancelledTheJob) {
  FollowedJob followed;
  followed.job.set_id("12");
  followed.job.set_state(v1::JOB_STATE_DONE);
  EXPECT_THAT(CheckNotCancelled(followed), IsOk());
  followed.job.set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(CheckNotCancelled(followed).message(),
            "job 12 was cancelled after 0 trials; hone jobs resume 12 continues it");
  followed.job.mutable_request()->set_unpublished(true);
  EXPECT_EQ(CheckNotCancelled(followed).message(), "job 12 was cancelled after 0 trials")
      << "its result is only for the command that created it";
}

TEST(CheckNotCancelledTest, ATaskBelongsToANetworkWhichMayBeDone) {
  FollowedJob followed;
  followed.job.set_id("12.3");
  followed.job.set_state(v1::JOB_STATE_CANCELLED);
  EXPECT_EQ(CheckNotCancelled(followed).message(),
            "job 12.3 was cancelled after 0 trials; hone jobs show 12 shows its network");
}

TEST(CheckNotCancelledTest, AJobWhoseTimeIsNearlyOverNeedsMore) {
  FollowedJob followed;
  v1::Job& job = followed.job;
  job.set_id("12");
  job.set_state(v1::JOB_STATE_CANCELLED);
  job.mutable_request()->set_max_time_ms(60'000);
  job.set_wall_ms(30'000);
  EXPECT_EQ(CheckNotCancelled(followed).message(),
            "job 12 was cancelled after 0 trials; hone jobs resume 12 continues it");
  job.set_wall_ms(50'000);
  job.set_after_cancel_ms(20'000);
  EXPECT_EQ(CheckNotCancelled(followed).message(),
            "job 12 was cancelled after 0 trials; hone jobs resume 12 continues it");
  job.set_after_cancel_ms(0);
  EXPECT_EQ(CheckNotCancelled(followed).message(),
            "job 12 was cancelled after 0 trials; hone jobs resume 12 --time 120s continues it");
}

TEST(CheckNotCancelledTest, SaysHowTheJobContinues) {
  FollowedJob followed{.interrupted = true};
  v1::Job& job = followed.job;
  job.set_id("12");
  job.set_trials(1);
  job.set_state(v1::JOB_STATE_CANCELLED);
  const std::string hint =
      "interrupted: job 12 ended after 1 trial; hone jobs resume 12 continues it";
  EXPECT_EQ(CheckNotCancelled(followed).message(), hint);
  job.mutable_network();
  EXPECT_EQ(CheckNotCancelled(followed).message(), hint) << "it had not begun";
  while (job.network().tasks_size() < 2) job.mutable_network()->add_tasks();
  job.mutable_network()->mutable_tasks(0)->set_confirmed(true);
  EXPECT_EQ(CheckNotCancelled(followed).message(), hint);
  job.set_state(v1::JOB_STATE_DONE);
  GoldenOfTest().Add("it ended before it could be cancelled",
                     CheckNotCancelled(followed).message());
  job.set_state(v1::JOB_STATE_CANCELLED);
  job.mutable_network()->mutable_tasks(1)->set_confirmed(true);
  EXPECT_EQ(CheckNotCancelled(followed).message(), hint)
      << "faster schedules may be found, even if each task has one";
}

TEST(NotCancelledErrorTest, IsAnInterruptionThatNamesTheJob) {
  const absl::Status error =
      NotCancelledError("12", absl::UnavailableError("cannot reach the server at x:1"));
  EXPECT_EQ(ExitCodeFor(error), kExitInterrupted);
  GoldenOfTest().Add(error.message());
}

TEST(LeftErrorTest, SaysWhatBecomesOfTheJob) {
  GoldenOfTest golden;
  const absl::Status watched = LeftError("12", OnInterrupt::kLeave);
  EXPECT_EQ(ExitCodeFor(watched), kExitInterrupted);
  golden.Add(watched.message());
  const absl::Status cancelled = LeftError("12", OnInterrupt::kLeaveCancelled);
  EXPECT_EQ(ExitCodeFor(cancelled), kExitInterrupted);
  golden.Add(cancelled.message());
}

TEST(DisturbedTextTest, CountsTheMeasurements) {
  v1::Job job;
  EXPECT_EQ(DisturbedText(job), "");
  job.set_disturbed(1);
  job.set_disturbance("repeated runs differed");
  EXPECT_EQ(DisturbedText(job),
            "other work disturbed 1 measurement; the last: repeated runs differed");
  job.set_disturbed(3);
  GoldenOfTest().Add(DisturbedText(job));
}

TEST(FailuresHintTest, AppearsOnlyIfACandidateFailed) {
  v1::Job job;
  job.set_id("12");
  EXPECT_EQ(FailuresHint(job), "");
  (*job.mutable_outcomes())["ok"] = 3;
  EXPECT_EQ(FailuresHint(job), "");
  (*job.mutable_outcomes())["crash"] = 1;
  GoldenOfTest().Add(FailuresHint(job));
}

}  // namespace
}  // namespace hone::cli
