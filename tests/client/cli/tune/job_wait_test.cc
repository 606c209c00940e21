
#include "client/cli/exit_code.h"
#include "client/cli/output/format.h"
#include "client/cli/output/phase_text.h"
#include "client/cli/tune/run_job.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/fakes/fake_clock.h"
#include "tests/status.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

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

TEST_F(JobWaitTest, APrivateWorkerIsNotExplained) {
  JobWait wait(&clock_, /*is_private=*/true);
  job_.set_wait_reason("no worker runs target t");
  wait.Look(job_, client::JobNews::kChanged);
  EXPECT_FALSE(wait.phase().has_value());
  EXPECT_FALSE(wait.TakeMessage().has_value());
  wait.Look(job_, client::JobNews::kNoServer);
  EXPECT_THAT(TextsOf(*wait.phase()).full, HasSubstr("no server since "));
  EXPECT_FALSE(wait.TakeMessage().has_value()) << "a private server does not come back";
}

// The measurements in progress may give a first result, which is then confirmed.
TEST(StoppingTextTest, WithoutAResultItSaysWhatIsFinishedAndForHowLong) {
  v1::Job job;
  EXPECT_THAT(StoppingText(1, job), AllOf(HasSubstr("nothing has been measured yet"),
                                          HasSubstr("confirms their best, for at most 30 s")));
  job.mutable_request()->set_revalidate(1);
  EXPECT_THAT(StoppingText(1, job), HasSubstr("confirming the finalists"));
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
  EXPECT_THAT(native.TakeMessage(true).value_or(""), HasSubstr("if no worker is registered"));
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
  EXPECT_THAT(wait.TakeMessage(true).value_or(""), HasSubstr("creating the job"));
  EXPECT_FALSE(wait.TakeMessage(true).has_value());
}

TEST(TimeToStartTextTest, TellsWhatTookTheTime) {
  EXPECT_EQ(TimeToStartText(10'000, 1000), "");
  EXPECT_THAT(TimeToStartText(4000, 2400),
              HasSubstr("took 2.4 s to start; 1.6 s are left for the job"));
  EXPECT_THAT(
      TimeToStartText(3000, 2400),
      HasSubstr("took 2.4 s to start; --time 3.0 s is exceeded, because the job gets 1.0 s"));
}

TEST_F(JobWaitTest, ReportsAnUnreachableServerUntilItReturns) {
  wait_.Look(job_, client::JobNews::kChanged);
  const std::string since = FormatTime(absl::ToUnixMillis(clock_.Now()));
  wait_.Look(job_, client::JobNews::kNoServer);
  EXPECT_EQ(TextsOf(*wait_.phase()).full, "no server since " + since);
  EXPECT_THAT(wait_.TakeMessage().value_or(""), HasSubstr("job 12 continues"));
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
  EXPECT_THAT(CheckNotCancelled(followed).message(), Not(HasSubstr("resume")))
      << "it ended before it could be cancelled";
  job.set_state(v1::JOB_STATE_CANCELLED);
  job.mutable_network()->mutable_tasks(1)->set_confirmed(true);
  EXPECT_EQ(CheckNotCancelled(followed).message(), hint)
      << "faster schedules may be found, even if each task has one";
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
  EXPECT_THAT(cancelled.message(), AllOf(HasSubstr("job 12 is being cancelled on the server"),
                                         HasSubstr("hone jobs cancel 12 --now ends it at once")));
}

TEST(DisturbedTextTest, CountsTheMeasurements) {
  v1::Job job;
  EXPECT_EQ(DisturbedText(job), "");
  job.set_disturbed(1);
  job.set_disturbance("repeated runs differed");
  EXPECT_EQ(DisturbedText(job),
            "other work disturbed 1 measurement; the last: repeated runs differed");
  job.set_disturbed(3);
  EXPECT_THAT(DisturbedText(job), HasSubstr("3 measurements"));
}

TEST(FailuresHintTest, AppearsOnlyIfACandidateFailed) {
  v1::Job job;
  job.set_id("12");
  EXPECT_EQ(FailuresHint(job), "");
  (*job.mutable_outcomes())["ok"] = 3;
  EXPECT_EQ(FailuresHint(job), "");
  (*job.mutable_outcomes())["crash"] = 1;
  EXPECT_THAT(FailuresHint(job), HasSubstr("hone records query --job 12"));
}

}  // namespace
}  // namespace hone::cli
