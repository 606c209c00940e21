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

constexpr char kTarget[] = "aarch64-board";

client::Worker Board() {
  return {.id = "pi-07",
          .target = kTarget,
          .connected = true,
          .last_seen_unix_ms = 1'700'000'000'000,
          .can_run = true};
}

client::Worker Builder() { return {.id = "build-1", .connected = true, .can_build = true}; }

TEST(WhyNoWorkerTest, NamesWorkerTargetTimeAndRemedy) {
  EXPECT_EQ(WhyNoWorker({Board(), Builder()}, kTarget), "");
  client::Worker board = Board();
  board.connected = false;
  EXPECT_EQ(WhyNoWorker({board, Builder()}, kTarget),
            "no worker runs target aarch64-board: pi-07 was last seen at " +
                FormatTime(1'700'000'000'000) + "; start hone-worker there again");
  client::Worker drained = Board();
  drained.id = "pi-08";
  drained.draining = true;
  EXPECT_THAT(WhyNoWorker({board, drained, Builder()}, kTarget),
              AllOf(HasSubstr("pi-08 is drained"), HasSubstr("hone workers resume NAME")));
  client::Worker stopped = board;
  stopped.stopping = true;
  EXPECT_EQ(WhyNoWorker({stopped, Builder()}, kTarget),
            "no worker runs target aarch64-board: pi-07 was stopped at " +
                FormatTime(1'700'000'000'000) + "; start hone-worker there again");
  EXPECT_THAT(WhyNoWorker({Builder()}, kTarget),
              "no worker runs target aarch64-board; start hone-worker on such a machine");
}

TEST(WhyNoWorkerTest, ABoardNeedsABuilder) {
  client::Worker builder = Builder();
  builder.flagged = "it lies";
  EXPECT_THAT(
      WhyNoWorker({Board(), builder}, kTarget),
      AllOf(HasSubstr("no worker builds kernels"), HasSubstr("build-1 is refused: it lies")));
  EXPECT_THAT(WhyNoWorker({Board()}, kTarget), HasSubstr("a machine with hone-builder"));
}

class JobWaitTest : public ::testing::Test {
 protected:
  JobWaitTest() {
    job_.id = "12";
    job_.state = client::JobState::kRunning;
    job_.target = kTarget;
  }

  FakeClock clock_;
  client::Job job_;
  std::vector<client::Worker> workers_{Board(), Builder()};
  JobWait wait_{&clock_, [this] { return workers_; }};
};

TEST_F(JobWaitTest, ExplainsAStalledJobOnce) {
  workers_[0].connected = false;
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_THAT(wait_.phase(), IsEmpty()) << "it may be measuring";
  clock_.Advance(absl::Seconds(6));
  wait_.Look(job_, client::JobNews::kNone);
  EXPECT_EQ(wait_.phase(), "waiting for a worker");
  EXPECT_THAT(wait_.TakeMessage().value_or(""),
              AllOf(HasSubstr("job 12 waits"), HasSubstr("pi-07 was last seen")));
  clock_.Advance(absl::Seconds(6));
  wait_.Look(job_, client::JobNews::kNone);
  EXPECT_FALSE(wait_.TakeMessage().has_value());
  workers_[0].connected = true;
  job_.trials = 1;
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_THAT(wait_.phase(), IsEmpty());
}

// Its search may end without a worker, because its time is up or because it was cancelled.
TEST_F(JobWaitTest, StillWaitsForAWorkerWhenItBeginsToConfirm) {
  workers_[0].connected = false;
  wait_.Look(job_, client::JobNews::kChanged);
  clock_.Advance(absl::Seconds(6));
  wait_.Look(job_, client::JobNews::kNone);
  EXPECT_TRUE(wait_.needs_worker());
  EXPECT_TRUE(wait_.TakeMessage().has_value());
  job_.state = client::JobState::kConfirming;
  job_.phase = "confirming the finalists";
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_EQ(wait_.phase(), "waiting for a worker");
  job_.phase = "round 1: 0 of 6 confirmed";
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_EQ(wait_.phase(), "waiting for a worker");
  EXPECT_FALSE(wait_.TakeMessage().has_value()) << "it was explained before";
  workers_[0].connected = true;
  workers_[0].last_seen_unix_ms += 1000;
  job_.phase = "round 1: 1 of 6 confirmed";
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_THAT(wait_.phase(), IsEmpty());
  EXPECT_FALSE(wait_.needs_worker());
}

TEST_F(JobWaitTest, AConfirmationWithoutAWorkerIsNoticedAtOnce) {
  wait_.Look(job_, client::JobNews::kChanged);
  job_.state = client::JobState::kConfirming;
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_THAT(wait_.phase(), IsEmpty());
  job_.state = client::JobState::kRunning;  // it was resumed
  wait_.Look(job_, client::JobNews::kChanged);
  workers_[0].connected = false;
  workers_[0].stopping = true;
  job_.state = client::JobState::kConfirming;
  wait_.Look(job_, client::JobNews::kChanged);
  EXPECT_EQ(wait_.phase(), "waiting for a worker");
  EXPECT_THAT(wait_.TakeMessage().value_or(""), HasSubstr("pi-07 was stopped at"));
}

TEST(StoppingTextTest, PromisesNoConfirmationWithoutAWorker) {
  EXPECT_EQ(StoppingText(1, /*needs_worker=*/false),
            "stopping: confirming the finalists; Ctrl-C again skips this");
  EXPECT_EQ(StoppingText(1, /*needs_worker=*/true),
            "stopping: no worker is there to confirm the finalists");
  EXPECT_EQ(StoppingText(2, /*needs_worker=*/true), "stopping now");
}

// A board that has lost its power still counts as connected for some time.
TEST_F(JobWaitTest, AWorkerThatDoesNotCallIsNamed) {
  wait_.Look(job_, client::JobNews::kChanged);
  for (int i = 0; i < 2; ++i) {
    clock_.Advance(absl::Seconds(5));
    workers_[1].last_seen_unix_ms += 5000;
    wait_.Look(job_, client::JobNews::kNone);
    if (i == 0) {
      EXPECT_FALSE(wait_.TakeMessage().has_value()) << "it may have called just now";
    }
  }
  EXPECT_THAT(wait_.TakeMessage().value_or(""),
              AllOf(HasSubstr("pi-07 was last seen at"), HasSubstr("start hone-worker there")));
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
