#include "client/cli/output/progress.h"

#include <string>
#include <utility>

#include "client/cli/output/phase_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/golden.h"

namespace hone::cli {
namespace {

using ::testing::EndsWith;
using ::testing::StartsWith;

v1::Job JobInProgress() {
  v1::Job job;
  job.set_state(v1::JOB_STATE_RUNNING);
  job.mutable_request()->set_max_trials(256);
  job.set_trials(128);
  job.set_wall_ms(20'000);
  (*job.mutable_outcomes())["ok"] = 96;
  (*job.mutable_outcomes())["crash"] = 32;
  job.mutable_best();
  job.mutable_best()->mutable_record()->set_id(9);
  job.mutable_best()->set_confirmed(true);
  job.mutable_best()->set_gflops(291.8);
  job.mutable_best()->set_peak_gflops(583.6);
  return job;
}

// That of a job that was followed from its first trial.
Pace PaceOf(v1::Job job) {
  Pace pace;
  const int64_t trials = job.trials();
  const int64_t wall_ms = job.wall_ms();
  job.set_trials(0);
  job.set_wall_ms(0);
  job.set_state(v1::JOB_STATE_RUNNING);
  pace.Look(job);
  job.set_trials(trials);
  job.set_wall_ms(wall_ms);
  pace.Look(job);
  return pace;
}

v1::JobPhase Phase(v1::JobPhase::Kind kind, const std::string& detail = "", int64_t done = 0,
                   int64_t whole = 0, int round = 0) {
  v1::JobPhase phase;
  phase.set_kind(kind);
  phase.set_detail(detail);
  phase.set_done(done);
  phase.set_whole(whole);
  phase.set_round(round);
  return phase;
}

std::string Text(const v1::Job& job, int columns = 1000) {
  return ProgressText(job, PaceOf(job), columns);
}

TEST(ProgressTextTest, ShowsEverythingOnAWideTerminal) {
  GoldenOfTest golden;
  EXPECT_EQ(Text(JobInProgress()),
            "tuning  128/256 trials  best 291.8 GFLOP/s (50.0 % of peak)  invalid 25.0 %"
            "  6.4 trials/s  0:20 left");
  v1::Job job = JobInProgress();
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_WAITING_FOR_RESULT);
  golden.Add(Text(job));
  job.set_left_ms(absl::ToInt64Milliseconds(absl::Seconds(17)));
  golden.Add(Text(job));
}

TEST(ProgressTextTest, TheTimeLeftFallsUntilTheNextTrial) {
  GoldenOfTest golden;
  v1::Job job = JobInProgress();
  Pace pace = PaceOf(job);
  job.set_wall_ms(job.wall_ms() + 3000);
  pace.Look(job);
  golden.Add(ProgressText(job, pace));
  job.set_wall_ms(job.wall_ms() + 60'000);
  pace.Look(job);
  golden.Add(ProgressText(job, pace));
}

TEST(ProgressTextTest, ShowsNoSpeedBeforeItIsKnown) {
  const std::string text = ProgressText(JobInProgress(), Pace());
  EXPECT_EQ(text, "tuning  128/256 trials  best 291.8 GFLOP/s (50.0 % of peak)  invalid 25.0 %");
}

TEST(ProgressTextTest, ExplainsAMissingBest) {
  GoldenOfTest golden;
  v1::Job job = JobInProgress();
  job.clear_best();
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_MEASURING_FIRST_AGAIN);
  golden.Add(Text(job));
  job.clear_phase();
  job.clear_outcomes();
  (*job.mutable_outcomes())["crash"] = 128;
  golden.Add(Text(job));
  job.set_state(v1::JOB_STATE_FAILED);
  golden.Add(Text(job));
  job = JobInProgress();
  job.clear_best();
  job.set_trials(0);
  job.clear_outcomes();
  EXPECT_EQ(Text(job), "tuning  0/256 trials");
  job.set_state(v1::JOB_STATE_PENDING);
  EXPECT_EQ(Text(job), "pending") << "it may have nothing to tune";
}

TEST(ProgressTextTest, AnOperatorThatOnlyMovesDataHasALatency) {
  v1::Job job = JobInProgress();
  job.mutable_best()->set_gflops(0);
  job.mutable_best()->set_latency_ns(1234);
  GoldenOfTest().Add(Text(job));
}

TEST(ProgressTextTest, MarksAnUnconfirmedLatency) {
  GoldenOfTest golden;
  v1::Job job = JobInProgress();
  job.mutable_best()->mutable_record()->set_id(0);
  job.mutable_best()->set_confirmed(false);  // the leader of a search
  golden.Add(Text(job));
  job.mutable_best()->mutable_record()->set_id(9);
  job.mutable_best()->set_confirmed(false);
  golden.Add(Text(job));
}

// At its end, a job has the published best, which may be that of another job.
TEST(ProgressTextTest, ShowsWhatThisJobFound) {
  GoldenOfTest golden;
  v1::Job job = JobInProgress();
  job.set_id("4");
  job.mutable_best()->mutable_record()->set_job_id("3");
  golden.Add(Text(job));
  *job.mutable_own_best() = job.best();
  job.mutable_own_best()->mutable_record()->set_job_id("4");
  job.mutable_own_best()->set_gflops(129.5);
  golden.Add(Text(job));
  job.set_state(v1::JOB_STATE_DONE);
  golden.Add(Text(job));
}

TEST(ProgressTextTest, ShowsTheSumOfANetwork) {
  GoldenOfTest golden;
  v1::Job job = JobInProgress();
  job.clear_best();
  job.mutable_network();
  job.mutable_network()->set_latency_ns(2e6);
  job.mutable_network()->set_confirmed(true);
  EXPECT_EQ(Text(job),
            "tuning  128/256 trials  sum 2.000 ms  invalid 25.0 %  6.4 trials/s  0:20 left");
  while (job.network().tasks_size() < 3) job.mutable_network()->add_tasks();
  job.mutable_network()->set_latency_ns(0);
  job.mutable_network()->mutable_tasks(1)->set_latency_ns(1e6);
  golden.Add(Text(job));
  job.mutable_network()->clear_tasks();
  job.mutable_network()->set_latency_ns(2e6);
  job.mutable_network()->set_default_latency_ns(3e7);
  golden.Add(Text(job));
  job.mutable_network()->set_confirmed(false);
  while (job.network().tasks_size() < 2) job.mutable_network()->add_tasks();
  job.mutable_network()->mutable_tasks(0)->set_confirmed(true);
  golden.Add("a screened latency is too low", Text(job));
  job.mutable_network()->mutable_tasks(1)->set_confirmed(true);
  job.mutable_network()->set_confirmed(true);
  golden.Add(Text(job));
  job.set_trials(0);
  job.clear_outcomes();
  EXPECT_EQ(Text(job), "tuning  sum 2.000 ms (speed-up 15.00x)") << "it may have nothing to tune";
}

TEST(ProgressTextTest, DropsTheLeastImportantPartsFirst) {
  const v1::Job job = JobInProgress();
  EXPECT_EQ(Text(job, 84),
            "tuning  128/256 trials  best 291.8 GFLOP/s  invalid 25.0 %  6.4 trials/s  0:20 left");
  EXPECT_EQ(Text(job, 79), "tuning  128/256 trials  best 291.8 GFLOP/s  invalid 25.0 %  0:20 left");
  EXPECT_EQ(Text(job, 60), "tuning  128/256 trials  best 291.8 GFLOP/s  0:20 left");
}

TEST(ProgressTextTest, ThePhaseOfASearchGoesBeforeItsTrials) {
  v1::Job job = JobInProgress();
  job.mutable_request()->set_max_trials(0);
  job.set_trials(53);
  job.mutable_best()->mutable_record()->set_id(0);
  job.mutable_best()->set_confirmed(false);
  job.mutable_best()->set_gflops(6.9);
  job.set_left_ms(absl::ToInt64Milliseconds(absl::Seconds(3)));
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_FINISHING);
  EXPECT_THAT(Text(job), EndsWith("0:03 left  (finishing the measurements in progress)"));
  EXPECT_EQ(Text(job, 79), "tuning  53 trials  best ~6.9 GFLOP/s  0:03 left  (finishing …)");
  EXPECT_EQ(Text(job, 60), "tuning  53 trials  best ~6.9 GFLOP/s  0:03 left");
  EXPECT_EQ(Text(job, 39), "53  best ~6.9 GFLOP/s  0:03 left");
}

TEST(ProgressTextTest, FitsIn40Columns) {
  v1::Job job = JobInProgress();
  EXPECT_EQ(Text(job, 39), "128/256  best 291.8 GFLOP/s  0:20 left");
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_ROUND, "", 2, 5, 1);
  job.set_left_ms(absl::ToInt64Milliseconds(absl::Seconds(20)));
  EXPECT_EQ(Text(job, 39), "128/256  best 291.8 GFLOP/s  0:20 left");
  job.mutable_best()->mutable_record()->set_id(0);
  job.mutable_best()->set_confirmed(false);
  EXPECT_EQ(Text(job, 39), "128/256  best ~291.8 GFLOP/s  0:20 left");
  job.set_state(v1::JOB_STATE_CONFIRMING);
  EXPECT_EQ(Text(job, 51), "confirming  128/256  best ~291.8 GFLOP/s  0:20 left");
  EXPECT_EQ(Text(job, 39), "confirming  128/256  0:20 left");
  EXPECT_EQ(Text(job, 20), "confirming  128/256");
  v1::Job without_phase = job;
  without_phase.clear_phase();
  EXPECT_EQ(Text(without_phase, 39), "confirming  128/256  0:20 left");
  job.set_state(v1::JOB_STATE_RUNNING);
  job.set_trials(100'000'000);
  job.mutable_request()->set_max_trials(100'000'000);
  EXPECT_EQ(Text(job, 39), "100000000/100000000  0:20 left");
}

// What a job waits for is shown rather than its numbers; the detail goes first.
TEST(ProgressTextTest, AWaitStaysOnANarrowTerminal) {
  v1::Job job = JobInProgress();
  job.set_state(v1::JOB_STATE_CONFIRMING);
  job.set_left_ms(absl::ToInt64Milliseconds(absl::Seconds(20)));
  *job.mutable_phase() =
      Phase(v1::JobPhase::KIND_WAITING_FOR_QUIET, "on worker a-long-name, other programs are busy");
  GoldenOfTest().Add(Text(job));
  EXPECT_EQ(Text(job, 90),
            "confirming  128/256 trials  best 291.8 GFLOP/s  0:20 left  "
            "(waiting for a quieter machine)");
  EXPECT_EQ(Text(job, 39), "waiting for a quieter machine 0:20 left");
  job.set_left_ms(absl::ToInt64Milliseconds(absl::Minutes(70)));
  EXPECT_EQ(Text(job, 39), "(waiting for a quieter machine)");
  job.clear_left_ms();
  EXPECT_EQ(Text(job, 40), "128/256  (waiting for a quieter machine)");
  job.set_left_ms(absl::ToInt64Milliseconds(absl::Seconds(20)));
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_WAITING_FOR_WORKER);
  EXPECT_EQ(Text(job, 39), "128/256  waiting for a worker 0:20 left");
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_NO_SERVER, "2026-11-24 17:12:35");
  EXPECT_EQ(Text(job, 39), "(no server since 2026-11-24 17:12:35)");
}

TEST(ProgressTextTest, ShowsHowANetworkWaits) {
  v1::Job job = JobInProgress();
  job.set_state(v1::JOB_STATE_CONFIRMING);
  job.clear_best();
  job.mutable_network();
  job.mutable_network()->set_latency_ns(2e6);
  while (job.network().tasks_size() < 5) job.mutable_network()->add_tasks();
  job.set_disturbed(3);
  job.set_left_ms(absl::ToInt64Milliseconds(absl::Seconds(52)));
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_WAITING_FOR_QUIET, "on worker x, …", 2, 5);
  EXPECT_EQ(Text(job, 79),
            "128/256  sum ~2.000 ms  3 disturbed  0:52 left  (waiting for a quieter machine)");
}

TEST(ProgressTextTest, CountsDisturbedMeasurementsOnce) {
  v1::Job job = JobInProgress();
  job.set_state(v1::JOB_STATE_CONFIRMING);
  job.set_disturbed(7);
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_ROUND, "", 1, 5, 2);
  EXPECT_THAT(Text(job), EndsWith("  7 disturbed  (round 2: 1 of 5 measured)"));
}

TEST(ProgressTextTest, CountsWhatARevalidationHasConfirmed) {
  v1::Job job = JobInProgress();
  job.set_state(v1::JOB_STATE_CONFIRMING);
  job.mutable_request()->set_max_trials(3);
  job.mutable_request()->set_revalidate(3);
  job.set_trials(2);
  job.clear_outcomes();
  EXPECT_EQ(Text(job), "confirming  2/3 confirmed  best 291.8 GFLOP/s (50.0 % of peak)");
  job.set_state(v1::JOB_STATE_RUNNING);
  EXPECT_THAT(Text(job), StartsWith("revalidating  2/3 confirmed"));
}

TEST(ProgressTextTest, ShowsThePhaseIn80Columns) {
  v1::Job job = JobInProgress();
  job.set_state(v1::JOB_STATE_CONFIRMING);
  job.set_trials(1000);
  job.mutable_request()->set_max_trials(1000);
  job.mutable_best()->set_gflops(12'345);
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_ROUND, "", 5, 8, 3);
  job.set_left_ms(absl::ToInt64Milliseconds(absl::Seconds(17)));
  const std::string text = Text(job, 79);
  EXPECT_LE(text.size(), 79u);
  GoldenOfTest().Add(text);
}

TEST(PhaseTextTest, SaysWhatAJobDoesOrWaitsFor) {
  v1::JobPhase phase = Phase(v1::JobPhase::KIND_MEASURING_WITHOUT, "worker x is silent", 2);
  EXPECT_EQ(TextsOf(phase).full, "measuring without 2 candidates: worker x is silent");
  EXPECT_EQ(TextsOf(phase).brief, "measuring without 2 candidates");
  phase = Phase(v1::JobPhase::KIND_CHECKING_WINNER, "pi-07");
  EXPECT_EQ(TextsOf(phase).full, "worker pi-07 checks the winner");
  phase = Phase(v1::JobPhase::KIND_WAITING_FOR_QUIET, "on worker x, …", 2, 5);
  EXPECT_EQ(TextsOf(phase).full,
            "waiting for a quieter machine: 2 of 5 tasks confirmed; on worker x, …");
  phase = Phase(v1::JobPhase::KIND_FINISHING);
  phase.set_cancelling(true);
  EXPECT_EQ(TextsOf(phase).full, "finishing the measurements in progress (being cancelled)");
  EXPECT_EQ(TextsOf(v1::JobPhase()).full, "");
}

TEST(PhaseTextTest, AnUnknownKindIsItsDetail) {
  v1::JobPhase phase;
  phase.set_kind(static_cast<v1::JobPhase::Kind>(1000));
  phase.set_detail("polishing");
  EXPECT_EQ(TextsOf(phase).full, "polishing");
  EXPECT_EQ(RoleOf(phase), PhaseRole::kFinishes);
}

// New kinds must not be forgotten there.
TEST(PhaseTextTest, EveryKindHasWords) {
  for (int kind = 1; v1::JobPhase::Kind_IsValid(kind); ++kind) {
    EXPECT_NE(TextsOf(Phase(static_cast<v1::JobPhase::Kind>(kind))).full, "") << kind;
  }
}

TEST(TrialsTextTest, SaysHowFarAJobIs) {
  v1::Job job = JobInProgress();
  EXPECT_EQ(TrialsText(job), "128 of 256 trials (50 %), about 0:20 left");
  job.mutable_request()->set_max_time_ms(25'000);
  job.set_left_ms(absl::ToInt64Milliseconds(absl::Seconds(5)));
  EXPECT_EQ(TrialsText(job), "128 of 256 trials (80 %), about 0:05 left");
  job.mutable_request()->set_max_trials(0);
  EXPECT_EQ(TrialsText(job), "128 trials (80 % of its time), about 0:05 left");
  // The time after a cancel does not count.
  job.set_after_cancel_ms(10'000);
  EXPECT_EQ(*ProgressOf(job).share, 0.4);
  job.set_state(v1::JOB_STATE_DONE);
  EXPECT_EQ(TrialsText(job), "128 trials");
  EXPECT_EQ(*ProgressOf(job).share, 1);
  EXPECT_EQ(ProgressOf(job).left, absl::ZeroDuration());
}

TEST(TrialsTextTest, TheSpeedSaysNothingAboutAJobThatWaits) {
  v1::Job job = JobInProgress();
  *job.mutable_phase() = Phase(v1::JobPhase::KIND_WAITING_FOR_WORKER);
  EXPECT_EQ(TrialsText(job), "128 of 256 trials (50 %)");
  job.clear_phase();
  job.set_trials(0);
  EXPECT_EQ(TrialsText(job), "0 of 256 trials (0 %)");
  job.mutable_request()->set_max_trials(0);
  EXPECT_FALSE(ProgressOf(job).share.has_value());
}

}  // namespace
}  // namespace hone::cli
