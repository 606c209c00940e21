#include "client/cli/output/progress.h"

#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace hone::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

client::Job JobInProgress() {
  client::Job job;
  job.state = client::JobState::kRunning;
  job.spec.max_trials = 256;
  job.trials = 128;
  job.wall_ms = 20'000;
  job.outcomes = {{"ok", 96}, {"crash", 32}};
  job.best.emplace();
  job.best->record.id = 9;
  job.best->record.policy.name = "confirm";
  job.best->gflops = 291.8;
  job.best->peak_gflops = 583.6;
  return job;
}

// That of a job that was followed from its first trial.
Pace PaceOf(client::Job job) {
  Pace pace;
  const int64_t trials = std::exchange(job.trials, 0), wall_ms = std::exchange(job.wall_ms, 0);
  job.state = client::JobState::kRunning;
  pace.Look(job);
  job.trials = trials;
  job.wall_ms = wall_ms;
  pace.Look(job);
  return pace;
}

std::string Text(const client::Job& job, int columns = 1000) {
  return ProgressText(job, PaceOf(job), columns);
}

TEST(ProgressTextTest, ShowsEverythingOnAWideTerminal) {
  EXPECT_EQ(Text(JobInProgress()),
            "tuning  128/256 trials  best 291.8 GFLOP/s (50.0 % of peak)  invalid 25.0 %"
            "  6.4 trials/s  0:20 left");
  client::Job job = JobInProgress();
  job.phase = "waiting";
  EXPECT_THAT(Text(job), HasSubstr("trials/s  (waiting)"));
  job.left = absl::Seconds(17);
  EXPECT_THAT(Text(job), HasSubstr("0:17 left  (waiting)"));
}

TEST(ProgressTextTest, TheTimeLeftFallsUntilTheNextTrial) {
  client::Job job = JobInProgress();
  Pace pace = PaceOf(job);
  job.wall_ms += 3000;
  pace.Look(job);
  EXPECT_THAT(ProgressText(job, pace), HasSubstr("0:17 left"));
  job.wall_ms += 60'000;
  pace.Look(job);
  EXPECT_THAT(ProgressText(job, pace), Not(HasSubstr("left")));
}

TEST(ProgressTextTest, ShowsNoSpeedBeforeItIsKnown) {
  const std::string text = ProgressText(JobInProgress(), Pace());
  EXPECT_EQ(text, "tuning  128/256 trials  best 291.8 GFLOP/s (50.0 % of peak)  invalid 25.0 %");
}

TEST(ProgressTextTest, ExplainsAMissingBest) {
  client::Job job = JobInProgress();
  job.best.reset();
  job.phase = "measuring the first best again";
  EXPECT_THAT(Text(job), HasSubstr("0:20 left  (measuring the first best again)"));
  job.phase.clear();
  job.outcomes = {{"crash", 128}};
  EXPECT_THAT(Text(job), HasSubstr("trials  no valid trial yet  invalid 100.0 %"));
  job.state = client::JobState::kFailed;
  EXPECT_THAT(Text(job), HasSubstr("trials  no valid trial  invalid 100.0 %"));
  job = JobInProgress();
  job.best.reset();
  job.trials = 0;
  job.outcomes.clear();
  EXPECT_EQ(Text(job), "tuning  0/256 trials");
  job.state = client::JobState::kPending;
  EXPECT_EQ(Text(job), "pending") << "it may have nothing to tune";
}

TEST(ProgressTextTest, AnOperatorThatOnlyMovesDataHasALatency) {
  client::Job job = JobInProgress();
  job.best->gflops = 0;
  job.best->record.result.latency_ns = 1234;
  job.best->record.result.reference_drift = 1;
  EXPECT_THAT(Text(job), HasSubstr("trials  best 1.234 us  invalid"));
}

TEST(ProgressTextTest, MarksAnUnconfirmedLatency) {
  client::Job job = JobInProgress();
  job.best->record.id = 0;  // the leader of a search
  EXPECT_THAT(Text(job), HasSubstr("best ~291.8 GFLOP/s"));
  job.best->record.id = 9;
  job.best->record.policy.name = "screen";
  EXPECT_THAT(Text(job), HasSubstr("best ~291.8 GFLOP/s"));
}

// At its end, a job has the published best, which may be that of another job.
TEST(ProgressTextTest, ShowsWhatThisJobFound) {
  client::Job job = JobInProgress();
  job.id = "4";
  job.best->record.job_id = "3";
  EXPECT_THAT(Text(job), HasSubstr("best known 291.8 GFLOP/s (job 3) (50.0 % of peak)"));
  job.own_best = job.best;
  job.own_best->record.job_id = "4";
  job.own_best->gflops = 129.5;
  EXPECT_THAT(Text(job), HasSubstr("best 129.5 GFLOP/s"));
  job.state = client::JobState::kDone;
  EXPECT_THAT(Text(job), HasSubstr("best of this run 129.5 GFLOP/s"));
}

TEST(ProgressTextTest, ShowsTheSumOfANetwork) {
  client::Job job = JobInProgress();
  job.best.reset();
  job.network.emplace();
  job.network->latency_ns = 2e6;
  job.network->confirmed = true;
  EXPECT_EQ(Text(job),
            "tuning  128/256 trials  sum 2.000 ms  invalid 25.0 %  6.4 trials/s  0:20 left");
  job.network->tasks.resize(3);
  job.network->latency_ns = 0;
  job.network->tasks[1].latency_ns = 1e6;
  EXPECT_THAT(Text(job), HasSubstr("trials  1 of 3 tasks measured  invalid"));
  job.network->tasks.clear();
  job.network->latency_ns = 2e6;
  job.network->default_latency_ns = 3e7;
  EXPECT_THAT(Text(job), HasSubstr("sum 2.000 ms (speed-up 15.00x)  invalid"));
  job.network->tasks.resize(2);
  job.network->tasks[0].confirmed = true;
  EXPECT_THAT(Text(job), HasSubstr("sum ~2.000 ms (speed-up 15.00x)"))
      << "a screened latency is too low";
  job.network->tasks[1].confirmed = true;
  EXPECT_THAT(Text(job), HasSubstr("sum 2.000 ms (speed-up 15.00x)"));
  job.trials = 0;
  job.outcomes.clear();
  EXPECT_EQ(Text(job), "tuning  sum 2.000 ms (speed-up 15.00x)") << "it may have nothing to tune";
}

TEST(ProgressTextTest, DropsTheLeastImportantPartsFirst) {
  const client::Job job = JobInProgress();
  EXPECT_EQ(Text(job, 84),
            "tuning  128/256 trials  best 291.8 GFLOP/s  invalid 25.0 %  6.4 trials/s  0:20 left");
  EXPECT_EQ(Text(job, 79), "tuning  128/256 trials  best 291.8 GFLOP/s  invalid 25.0 %  0:20 left");
  EXPECT_EQ(Text(job, 60), "tuning  128/256 trials  best 291.8 GFLOP/s  0:20 left");
}

TEST(ProgressTextTest, ThePhaseOfASearchGoesBeforeItsTrials) {
  client::Job job = JobInProgress();
  job.spec.max_trials = 0;
  job.trials = 53;
  job.best->record.id = 0;
  job.best->gflops = 6.9;
  job.left = absl::Seconds(3);
  job.phase = "finishing the measurements in progress";
  EXPECT_THAT(Text(job), EndsWith("0:03 left  (finishing the measurements in progress)"));
  EXPECT_EQ(Text(job, 79), "tuning  53 trials  best ~6.9 GFLOP/s  0:03 left  (finishing …)");
  EXPECT_EQ(Text(job, 60), "tuning  53 trials  best ~6.9 GFLOP/s  0:03 left");
  EXPECT_EQ(Text(job, 39), "53  best ~6.9 GFLOP/s  0:03 left");
}

TEST(ProgressTextTest, FitsIn40Columns) {
  client::Job job = JobInProgress();
  EXPECT_EQ(Text(job, 39), "128/256  best 291.8 GFLOP/s  0:20 left");
  job.phase = "round 1: 2 of 5 confirmed";
  job.left = absl::Seconds(20);
  EXPECT_EQ(Text(job, 39), "128/256  best 291.8 GFLOP/s  0:20 left");
  job.best->record.id = 0;
  EXPECT_EQ(Text(job, 39), "128/256  best ~291.8 GFLOP/s  0:20 left");
  job.state = client::JobState::kConfirming;
  EXPECT_EQ(Text(job, 51), "confirming  128/256  best ~291.8 GFLOP/s  0:20 left");
  EXPECT_EQ(Text(job, 39), "confirming  128/256  0:20 left");
  EXPECT_EQ(Text(job, 20), "confirming  128/256");
  client::Job without_phase = job;
  without_phase.phase.clear();
  EXPECT_EQ(Text(without_phase, 39), "confirming  128/256  0:20 left");
  job.state = client::JobState::kRunning;
  job.trials = 100'000'000;
  job.spec.max_trials = 100'000'000;
  EXPECT_EQ(Text(job, 39), "100000000/100000000  0:20 left");
}

// What a job waits for is shown rather than its numbers; the detail goes first.
TEST(ProgressTextTest, AWaitStaysOnANarrowTerminal) {
  client::Job job = JobInProgress();
  job.state = client::JobState::kConfirming;
  job.left = absl::Seconds(20);
  job.phase = "waiting for a quieter machine: on worker a-long-name, other programs are busy";
  EXPECT_THAT(Text(job), HasSubstr("on worker a-long-name"));
  EXPECT_EQ(Text(job, 90),
            "confirming  128/256 trials  best 291.8 GFLOP/s  0:20 left  "
            "(waiting for a quieter machine)");
  EXPECT_EQ(Text(job, 39), "waiting for a quieter machine 0:20 left");
  job.left = absl::Minutes(70);
  EXPECT_EQ(Text(job, 39), "(waiting for a quieter machine)");
  job.left = absl::InfiniteDuration();
  EXPECT_EQ(Text(job, 40), "128/256  (waiting for a quieter machine)");
  job.left = absl::Seconds(20);
  job.phase = "waiting for a worker";
  EXPECT_EQ(Text(job, 39), "128/256  waiting for a worker 0:20 left");
  job.phase = "no server since 2026-11-24 17:12:35";
  EXPECT_EQ(Text(job, 39), "(no server since 2026-11-24 17:12:35)");
}

TEST(ProgressTextTest, ShowsHowANetworkWaits) {
  client::Job job = JobInProgress();
  job.state = client::JobState::kConfirming;
  job.best.reset();
  job.network.emplace();
  job.network->latency_ns = 2e6;
  job.network->tasks.resize(5);
  job.disturbed = 3;
  job.left = absl::Seconds(52);
  job.phase = "waiting for a quieter machine: 2 of 5 tasks confirmed; on worker x, …";
  EXPECT_EQ(Text(job, 79),
            "128/256  sum ~2.000 ms  3 disturbed  0:52 left  (waiting for a quieter machine)");
}

TEST(ProgressTextTest, CountsDisturbedMeasurementsOnce) {
  client::Job job = JobInProgress();
  job.state = client::JobState::kConfirming;
  job.disturbed = 7;
  job.phase = "round 2: 1 of 5 measured";
  EXPECT_THAT(Text(job), EndsWith("  7 disturbed  (round 2: 1 of 5 measured)"));
  job.phase = "round 2: 1 of 5 measured, 2 disturbed";
  EXPECT_THAT(Text(job), AllOf(Not(HasSubstr("7 disturbed")), EndsWith(", 2 disturbed)")));
}

TEST(ProgressTextTest, CountsWhatARevalidationHasConfirmed) {
  client::Job job = JobInProgress();
  job.state = client::JobState::kConfirming;
  job.spec.max_trials = 3;
  job.spec.revalidate = 3;
  job.trials = 2;
  job.outcomes.clear();
  EXPECT_EQ(Text(job), "confirming  2/3 confirmed  best 291.8 GFLOP/s (50.0 % of peak)");
  job.state = client::JobState::kRunning;
  EXPECT_THAT(Text(job), StartsWith("revalidating  2/3 confirmed"));
}

TEST(ProgressTextTest, ShowsThePhaseIn80Columns) {
  client::Job job = JobInProgress();
  job.state = client::JobState::kConfirming;
  job.trials = 1000;
  job.spec.max_trials = 1000;
  job.best->gflops = 12'345;
  job.phase = "round 3: 5 of 8 measured";
  job.left = absl::Seconds(17);
  const std::string text = Text(job, 79);
  EXPECT_LE(text.size(), 79u);
  EXPECT_THAT(text, HasSubstr("1000/1000"));
  EXPECT_THAT(text, HasSubstr("GFLOP/s"));
  EXPECT_THAT(text, HasSubstr("0:17 left  (round 3: 5 of 8 measured)"));
}

TEST(TrialsTextTest, SaysHowFarAJobIs) {
  client::Job job = JobInProgress();
  EXPECT_EQ(TrialsText(job), "128 of 256 trials (50 %), about 0:20 left");
  job.spec.max_time_ms = 25'000;
  job.left = absl::Seconds(5);
  EXPECT_EQ(TrialsText(job), "128 of 256 trials (80 %), about 0:05 left");
  job.spec.max_trials = 0;
  EXPECT_EQ(TrialsText(job), "128 trials (80 % of its time), about 0:05 left");
  // The time after a cancel does not count.
  job.after_cancel_ms = 10'000;
  EXPECT_EQ(*ProgressOf(job).share, 0.4);
  job.state = client::JobState::kDone;
  EXPECT_EQ(TrialsText(job), "128 trials");
  EXPECT_EQ(*ProgressOf(job).share, 1);
  EXPECT_EQ(ProgressOf(job).left, absl::ZeroDuration());
}

TEST(TrialsTextTest, TheSpeedSaysNothingAboutAJobThatWaits) {
  client::Job job = JobInProgress();
  job.phase = "waiting for a worker";
  EXPECT_EQ(TrialsText(job), "128 of 256 trials (50 %)");
  job.phase.clear();
  job.trials = 0;
  EXPECT_EQ(TrialsText(job), "0 of 256 trials (0 %)");
  job.spec.max_trials = 0;
  EXPECT_FALSE(ProgressOf(job).share.has_value());
}

}  // namespace
}  // namespace hone::cli
