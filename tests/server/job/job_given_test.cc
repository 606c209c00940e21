// A job whose design space is a trace with all of its decisions. Its only candidate is measured
// even if there are records of it.

#include "common/record/processes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;

const std::vector<int64_t> kGiven = {2, 2, 2};  // 120 ns

class JobGivenTest : public ::testing::Test, protected JobHarness {
 protected:
  static JobSpec GivenSpec(const std::string& request = "given",
                           const std::string& space = "2,2,2") {
    JobSpec spec = Spec(100, request);
    spec.space = space;
    return spec;
  }
  int Leases(const std::string& job, const std::string& policy, const std::vector<int64_t>& of) {
    int count = 0;
    for (const fleet::LeaseGrant& lease : device.seen) {
      count += lease.work->job_id == job && lease.work->policy.name == policy &&
               lease.work->decisions == of;
    }
    return count;
  }
};

TEST_F(JobGivenTest, MeasuresTheDefaultAndTheCandidate) {
  const std::string id = Create(GivenSpec());
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 1);
  ASSERT_TRUE(job->given && job->best && job->default_schedule);
  EXPECT_EQ(job->given->record.candidate.decisions, kGiven);
  EXPECT_EQ(job->given->record.policy.name, "confirm");
  EXPECT_DOUBLE_EQ(job->given->record.result.latency_ns, 120);
  EXPECT_DOUBLE_EQ(job->given->gflops, 2000.0 / 120);
  EXPECT_EQ(job->given->peak_gflops, 50);
  EXPECT_THAT(job->given->trace, HasSubstr("[2, 2, 2]"));
  EXPECT_EQ(Leases(id, "confirm", {}), 2)
      << "the default is much slower, so it only completes three";
  EXPECT_GE(Leases(id, "confirm", kGiven), 3);
  EXPECT_EQ(job->best->record.candidate.decisions, kGiven) << "the given candidate won";
}

TEST_F(JobGivenTest, KnownCandidateIsMeasuredAgainInFull) {
  RunToEnd(Create(Spec(200, "tuned")));
  RunToEnd(Create(GivenSpec("first", "9,9,9")));
  const std::string id = Create(GivenSpec("second", "9,9,9"));
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Leases(id, "screen", {9, 9, 9}), 1);
  for (const fleet::LeaseGrant& lease : device.seen) {
    if (lease.work->job_id != id || lease.work->decisions.empty()) continue;
    EXPECT_EQ(lease.best_latency_ns, 0);
  }
}

TEST_F(JobGivenTest, SlowerCandidateIsReportedAndTheBestStays) {
  auto tuned = RunToEnd(Create(Spec(200, "tuned")));
  ASSERT_LT(tuned->best->record.result.latency_ns, 280);
  auto job = RunToEnd(Create(GivenSpec("given", "9,9,9")));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  ASSERT_TRUE(job->given.has_value());
  EXPECT_DOUBLE_EQ(job->given->record.result.latency_ns, 310);
  EXPECT_EQ(job->given->record.policy.name, "confirm");
  EXPECT_EQ(job->best->record.id, tuned->best->record.id);
}

TEST_F(JobGivenTest, AFailedCheckIsReportedWhileTheDefaultIsFine) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    if (lease.work->decisions.empty()) {
      result.latency_ns = 1000;
      result.samples_ns = {1000};
    } else {
      result.outcome = record::Outcome::kWrongOutput;
      result.detail = "element 7";
    }
    return result;
  };
  auto job = RunToEnd(Create(GivenSpec()));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  ASSERT_TRUE(job->given.has_value());
  EXPECT_EQ(job->given->record.result.outcome, record::Outcome::kWrongOutput);
  EXPECT_EQ(job->given->record.result.detail, "element 7");
}

TEST_F(JobGivenTest, FailureInConfirmationIsReported) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    if (IsConfirmation(lease) && !lease.work->decisions.empty()) {
      result = {.outcome = record::Outcome::kCrash, .detail = "signal 11"};
    }
    return result;
  };
  auto job = RunToEnd(Create(GivenSpec()));
  ASSERT_TRUE(job->given.has_value());
  EXPECT_EQ(job->given->record.result.outcome, record::Outcome::kCrash);
  EXPECT_EQ(job->state, JobState::kFailed);
}

// The screening of the candidate was disturbed, and looks faster than it is.
TEST_F(JobGivenTest, AResumedJobShowsItsConfirmedBest) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = FakeLatency(lease.work->decisions);
    if (lease.work->policy.name == "screen" && !lease.work->decisions.empty()) {
      result.latency_ns /= 2;
      result.dispersion = 2;
    }
    result.samples_ns = {result.latency_ns};
    return result;
  };
  const std::string id = Create(GivenSpec());
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const auto first = RunToEnd(id);
  ASSERT_EQ(first->state, JobState::kCancelled);
  ASSERT_TRUE(first->best && record::IsConfirmed(first->best->record));
  Step();
  jobs->Resume(id, 0, absl::ZeroDuration(),
               [](const SnapshotOr& job) { EXPECT_THAT(job, IsOk()); });
  for (int i = 0; i < 5; ++i) {
    Step(0);
    EXPECT_EQ(Get(id)->best->record.id, first->best->record.id);
  }
  EXPECT_EQ(Get(id)->state, JobState::kConfirming);
}

TEST_F(JobGivenTest, RestartedServerContinuesWithTheSameSpace) {
  const std::string id = Create(GivenSpec());
  Step(0);
  Restart();
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  ASSERT_TRUE(job->given.has_value());
  EXPECT_EQ(job->given->record.candidate.decisions, kGiven);
  EXPECT_EQ(job->trials, 1);
}

}  // namespace
}  // namespace hone::job
