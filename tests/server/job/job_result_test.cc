// The reported state of a job: its own best and the published one, disturbed measurements, and the
// steps that a job skips because of a time limit or because it is unpublished.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::Contains;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;

class JobResultTest : public ::testing::Test, protected JobHarness {
 protected:
  bool IsPublished(const JobSnapshot& job) {
    return store.LookupBest({.workload_digest = job.workload_digest, .target = "t"}).ok();
  }
};

TEST_F(JobResultTest, TheDefaultScheduleIsMeasuredBesideTheTrials) {
  auto job = RunToEnd(Create(Spec(1)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 1);
  EXPECT_THAT(job->outcomes, ElementsAre(Pair(record::Outcome::kOk, 1)));
  ASSERT_TRUE(job->default_schedule && job->best);
  EXPECT_FALSE(job->best->record.is_default) << "a candidate of the search is faster";
}

TEST_F(JobResultTest, ASearchWithoutALeaderSaysWhatItMeasures) {
  bool disturbed = true;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    if (disturbed && IsConfirmation(lease)) result.dispersion = 2;
    return result;
  };
  const std::string id = Create(Spec(1000));
  for (int i = 0; i < 100 && Get(id)->trials == 0; ++i) Step();
  EXPECT_EQ(Get(id)->phase.kind, PhaseKind::kMeasuringFirstAgain);
  disturbed = false;
  for (int i = 0; i < 100 && !Get(id)->best; ++i) Step();
  Step();
  ASSERT_EQ(Get(id)->state, JobState::kRunning);
  EXPECT_EQ(Get(id)->phase, JobPhase());
}

TEST_F(JobResultTest, AWithdrawnBestIsQuarantined) {
  const auto job = RunToEnd(Create(Spec(20)));
  ASSERT_TRUE(job->best && job->own_best);
  EXPECT_FALSE((*jobs->List(1, ""))[0]->best->record.quarantined);
  store.Forget({.workload_digest = job->workload_digest, .target = "t"}, "forgotten",
               [](const absl::StatusOr<store::Forgotten>& done) { EXPECT_THAT(done, IsOk()); });
  for (int i = 0; i < 2; ++i) {
    for (const auto& now : {Get(job->id), (*jobs->List(1, ""))[0]}) {
      EXPECT_EQ(now->best->record.quarantine_reason, "forgotten");
      EXPECT_TRUE(now->best->record.quarantined && now->own_best->record.quarantined);
    }
    Step();  // the job is not in memory any more
  }
}

TEST_F(JobResultTest, OwnBestIsShownBesideThePublishedOne) {
  auto first = RunToEnd(Create(Spec(200, "first")));
  auto second = RunToEnd(Create(Spec(2, "second")));
  ASSERT_EQ(second->state, JobState::kDone) << second->error;
  EXPECT_EQ(second->best->record.job_id, first->id);
  ASSERT_TRUE(second->own_best.has_value());
  EXPECT_EQ(second->own_best->record.job_id, second->id);
  EXPECT_EQ(second->own_best->record.policy.name, "confirm");
  EXPECT_GT(second->own_best->record.result.latency_ns, second->best->record.result.latency_ns);
}

// The machine runs at 70 % of its speed, which the reference kernel shows.
TEST_F(JobResultTest, FiguresDoNotDependOnTheMachinesSpeed) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    result.latency_ns *= 1.4;
    result.reference_drift = 1.4;
    return result;
  };
  auto job = RunToEnd(Create(Spec(50)));
  ASSERT_TRUE(job->best.has_value());
  EXPECT_EQ(job->best->record.policy.name, "confirm");
  EXPECT_DOUBLE_EQ(job->best->gflops, 2000 / record::SteadyLatencyNs(job->best->record.result));
  EXPECT_EQ(job->best->peak_gflops, 50);
}

TEST_F(JobResultTest, AConfirmationWaitsForAQuieterMachine) {
  bool disturbed = true;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    if (IsConfirmation(lease) && disturbed) result.reference_drift = 3.5;
    return result;
  };
  const std::string id = Create(Spec(20));
  for (int i = 0; i < 300 && Get(id)->phase.kind != PhaseKind::kWaitingForQuiet; ++i) Step();
  EXPECT_THAT(Get(id)->phase.detail, HasSubstr("on worker device, the machine was 3.5"));
  EXPECT_THAT(Get(id)->disturbance, HasSubstr("3.5 times as slow"));
  const int64_t before = Get(id)->disturbed;
  disturbed = false;
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->disturbed, before);
  for (const record::Record& record : *store.Query({.page_size = 1000})) {
    EXPECT_EQ(record.quarantined, record.result.reference_drift == 3.5);
  }
}

TEST_F(JobResultTest, DisturbedMachineDelaysTheEndForABoundedTime) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    if (IsConfirmation(lease)) result.reference_drift = 3.5;
    return result;
  };
  const std::string id = Create(Spec(20));
  int rounds = 0;
  for (int i = 0; i < 400 && !HasEnded(Get(id)->state); ++i) {  // 40 seconds
    Step();
    if (Get(id)->phase.kind == PhaseKind::kRound) ++rounds;
  }
  auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(job->disturbed, 0);
  EXPECT_GT(rounds, 0);
}

TEST_F(JobResultTest, ATimeLimitIncludesTheConfirmation) {
  for (const int seconds : {2, 5, 20, 60}) {
    JobSpec spec = Spec(0, std::to_string(seconds));
    spec.seed = seconds;
    spec.max_time = absl::Seconds(seconds);
    const std::string id = Create(spec);
    for (int i = 0; i < 1000 && !HasEnded(Get(id)->state); ++i) Step(2);
    auto job = Get(id);
    EXPECT_EQ(job->state, JobState::kDone) << job->error;
    EXPECT_TRUE(IsPublished(*job));
    EXPECT_LE(job->wall, absl::Seconds(seconds) + absl::Seconds(1));
  }
}

// A Propose takes time in which nothing else happens.
TEST_F(JobResultTest, AShortTimeLimitProposesFewCandidatesAtOnce) {
  Step(0);
  std::map<int, int64_t> queued;  // by the time limit in seconds
  for (const int seconds : {3, 600}) {
    JobSpec spec = Spec(0, std::to_string(seconds));
    spec.max_time = absl::Seconds(seconds);
    const std::string id = Create(spec);
    for (int i = 0; i < 5; ++i) Step(0);
    queued[seconds] = Get(id)->queued;
  }
  EXPECT_GT(queued[3], 0);
  EXPECT_LT(queued[3], queued[600]);
}

// The first build takes longer than the time limit.
TEST_F(JobResultTest, ATimeLimitWaitsForTheFirstResult) {
  JobSpec spec = Spec(0);
  spec.max_time = absl::Seconds(3);
  Step(0);  // the device registers
  const std::string id = Create(spec);
  for (int i = 0; i < 35; ++i) Step(0);
  EXPECT_FALSE(HasEnded(Get(id)->state));
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GE(job->trials, 1);
  EXPECT_TRUE(IsPublished(*job));
  EXPECT_LE(job->wall, absl::Seconds(5));
}

// The device finishes one measurement, and then nothing in time.
TEST_F(JobResultTest, ATimeLimitHoldsWithoutAResultToConfirm) {
  for (const int finished : {0, 1}) {
    JobSpec spec = Spec(0, std::to_string(finished));
    spec.workload = absl::StrCat("fake op", finished, " 12");
    spec.max_time = absl::Seconds(5);
    Step(0);  // the device registers
    const std::string id = Create(spec);
    Step(0);
    Step(finished);
    for (int i = 0; i < 100 && !HasEnded(Get(id)->state); ++i) Step(0);
    ASSERT_TRUE(HasEnded(Get(id)->state));
    EXPECT_LE(Get(id)->wall, absl::Milliseconds(6700));
  }
}

// Each measurement takes 5.4 s, so that the usual quarter of the time suffices for none.
TEST_F(JobResultTest, TheConfirmationBeginsEarlierOnABusyMachine) {
  device.measure = Timed;
  JobSpec spec = Spec(0);
  spec.max_time = absl::Seconds(20);
  Step(0);  // the device registers
  const std::string id = Create(spec);
  for (int i = 1; i < 400 && !HasEnded(Get(id)->state); ++i) Step(i % 54 == 0 ? 1 : 0);
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_TRUE(IsPublished(*job));
  EXPECT_LE(job->wall, absl::Milliseconds(21500));
}

// Workers measure the peak in f32, which integers may exceed.
TEST_F(JobResultTest, AWorkloadWithoutAPeakGetsNoneFromWorkers) {
  environment.has_fma_peak = false;
  const auto job = RunToEnd(Create(Spec(20)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(job->best->gflops, 0);
  EXPECT_EQ(job->best->peak_gflops, 0);
}

TEST(BestOfTest, APeakIsNeverRaisedToTheBest) {
  record::Record record;
  record.result.latency_ns = 10;
  const Best best = BestOf(record, /*flops=*/1000, /*peak_gflops=*/80);
  EXPECT_EQ(best.gflops, 100);
  EXPECT_EQ(best.peak_gflops, 80);
}

TEST_F(JobResultTest, AJobWithoutAResultNamesTheSlowWorker) {
  JobSpec spec = Spec(0);
  spec.max_time = absl::Seconds(3);
  Step(0);
  const std::string id = Create(spec);
  for (int i = 0; i < 200 && !HasEnded(Get(id)->state); ++i) Step(0);
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error,
              HasSubstr("the first candidate was not proposed, built and timed within the "));
  EXPECT_LE(job->wall, absl::Seconds(10));
}

// A board loses its power. The job uses its whole time, and its error names the board.
TEST_F(JobResultTest, AJobWithoutAResultNamesTheLostWorker) {
  JobSpec spec = Spec(0);
  spec.max_time = absl::Seconds(30);
  Step(0);
  const std::string id = Create(spec);
  for (int i = 0; i < 500 && !HasEnded(Get(id)->state); ++i) {
    executor->RunAll();
    clock.Advance(absl::Milliseconds(100));
    wall.Advance(absl::Milliseconds(100));
    fleet->Tick();
    jobs->Tick();
    executor->RunAll();
  }
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("no worker runs target t: device was last seen"));
  EXPECT_THAT(job->error, HasSubstr("start hone-worker on the machine of device again"));
  EXPECT_GE(job->wall, absl::Seconds(30));
  EXPECT_LE(job->wall, absl::Seconds(32));
}

TEST_F(JobResultTest, AnUnpublishedJobEndsWithItsBestAndItsArtifact) {
  JobSpec spec = Spec(1);
  spec.unpublished = true;
  auto job = RunToEnd(Create(spec));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  ASSERT_TRUE(job->best.has_value());
  EXPECT_TRUE(artifacts->Has(job->best->record.result.artifact_digest));
  EXPECT_FALSE(IsPublished(*job));
  for (const fleet::LeaseGrant& lease : device.seen) EXPECT_FALSE(IsConfirmation(lease));
}

TEST_F(JobResultTest, AnUnpublishedJobBuildsALostKernelAgain) {
  device.uploads = false;
  JobSpec spec = Spec(1);
  spec.unpublished = true;
  const std::string id = Create(spec);
  for (int i = 0; i < 1000 && Get(id)->state != JobState::kConfirming; ++i) Step();
  const size_t searched = device.seen.size();
  for (int i = 0; i < 1000 && device.seen.size() == searched; ++i) Step();
  EXPECT_TRUE(device.seen.back().build);
  device.uploads = true;
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_TRUE(artifacts->Has(job->best->record.result.artifact_digest));
}

TEST_F(JobResultTest, AnUnpublishedJobFailsIfItsArtifactDoesNotArrive) {
  device.uploads = false;
  JobSpec spec = Spec(1);
  spec.unpublished = true;
  auto job = RunToEnd(Create(spec), 1000);
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("did not arrive"));
}

}  // namespace
}  // namespace hone::job
