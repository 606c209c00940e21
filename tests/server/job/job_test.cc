// The search phase of a job, end to end with fakes.

#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;

class JobTest : public ::testing::Test, protected JobHarness {
 protected:
  std::vector<record::Record> Screened(const std::string& job) {
    std::vector<record::Record> records;
    const std::vector<record::Record> all = *store.Query({.page_size = 1000});
    for (const record::Record& record : all) {
      if (record.job_id == job && record.policy.name == "screen") records.push_back(record);
    }
    return records;
  }
};

TEST_F(JobTest, FindsAGoodCandidateAndPublishesIt) {
  const std::string id = Create(Spec(200));
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 200);
  EXPECT_EQ(job->outcomes.at(record::Outcome::kOk), 200);
  ASSERT_TRUE(job->best && job->default_schedule);
  EXPECT_LE(job->best->record.result.latency_ns, 130);
  EXPECT_EQ(job->best->record.policy.name, "confirm");
  EXPECT_DOUBLE_EQ(job->best->gflops, 2000 / job->best->record.result.latency_ns);
  EXPECT_EQ(job->best->peak_gflops, 50);
  EXPECT_THAT(job->best->trace, HasSubstr("space of op searched ["));
  EXPECT_EQ(job->default_schedule->record.result.latency_ns, 1000);

  HONE_ASSERT_OK_AND_ASSIGN(
      auto row, store.LookupBest({.workload_digest = job->workload_digest, .target = "t"}));
  EXPECT_EQ(row.record.id, job->best->record.id);
  EXPECT_THAT(store.GetArtifact(row.record.result.artifact_digest), IsOk());
}

// With this many results, only the best are kept for the confirmation.
TEST_F(JobTest, AnEarlyGoodCandidateIsTheBestOfALongJob) {
  std::vector<int64_t> first;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    if (first.empty()) first = lease.work->decisions;
    return Took(lease.work->decisions == first ? 50 : 100 + FakeLatency(lease.work->decisions));
  };
  const std::string id = Create(Spec(800));
  auto job = RunToEnd(id, 5000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 800);
  ASSERT_FALSE(first.empty());
  EXPECT_EQ(job->best->record.candidate.decisions, first);
}

TEST_F(JobTest, TheDefaultIsMeasuredFirstAndOnce) {
  const std::string id = Create(Spec(20));
  RunToEnd(id);
  ASSERT_FALSE(device.seen.empty());
  EXPECT_TRUE(device.seen[0].work->decisions.empty());
  int defaults = 0;
  for (const record::Record& record : Screened(id)) {
    if (!record.is_default) continue;
    ++defaults;
    EXPECT_EQ(record.trial, 0);
  }
  EXPECT_EQ(defaults, 1);
}

TEST_F(JobTest, NoCandidateIsMeasuredTwiceAcrossJobs) {
  RunToEnd(Create(Spec(60, "first")));
  const size_t leases = device.seen.size();
  const std::string second = Create(Spec(60, "second"));
  auto job = RunToEnd(second);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  std::set<std::vector<int64_t>> seen;
  for (size_t i = 0; i < device.seen.size(); ++i) {
    const fleet::LeaseGrant& lease = device.seen[i];
    if (lease.work->policy.name != "screen" || lease.work->decisions.empty()) continue;
    EXPECT_TRUE(seen.insert(lease.work->decisions).second) << "lease " << i << " of " << leases;
  }
  EXPECT_EQ(seen.size(), 120u);
}

TEST_F(JobTest, ALaterJobBeginsWithAModelOfTheEarlierRecords) {
  RunToEnd(Create(Spec(100, "first")));
  const std::string second = Create(Spec(20, "second"));
  RunToEnd(second);
  const store::JobEvent first_event = store.Events(second)->at(0);
  const ProposeEvent propose = *DecodePropose(first_event);
  EXPECT_EQ(propose.model_version, 1);
  EXPECT_EQ(propose.model_tells, 100) << "the default schedule is not in the searched space";
  EXPECT_GT(propose.prior_record, 0);
}

TEST_F(JobTest, QueueIsBoundedAndTheWorkerNeverStarves) {
  const std::string id = Create(Spec(400));
  Step(0);
  for (int i = 0; i < 60; ++i) {
    Step(4);
    auto job = Get(id);
    if (job->trials >= 330) break;
    EXPECT_THAT(job->queued, Le(2 * options.max_batch + 1));
    EXPECT_THAT(job->queued, Ge(8)) << "after " << job->trials;
  }
}

TEST_F(JobTest, ResultsAreAcknowledgedOnlyAfterTheirCommit) {
  const std::string id = Create(Spec(20));
  Step();
  store.Hold();
  for (int i = 0; i < 5; ++i) Step();
  EXPECT_TRUE(device.acknowledged.empty());
  EXPECT_EQ(Get(id)->trials, 0);
  store.Commit();
  for (int i = 0; i < 3; ++i) {
    store.Commit();
    Step();
  }
  EXPECT_FALSE(device.acknowledged.empty());
  EXPECT_GT(Get(id)->trials, 0);
}

TEST_F(JobTest, FailedCandidatesDoNotStopTheJob) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    if (!lease.work->decisions.empty() && lease.work->decisions[0] % 2 == 0) {
      result.outcome = record::Outcome::kCrash;
      result.detail = "signal 11";
      return result;
    }
    result.latency_ns = FakeLatency(lease.work->decisions);
    result.samples_ns = {result.latency_ns};
    return result;
  };
  auto job = RunToEnd(Create(Spec(60)));
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(job->outcomes.at(record::Outcome::kCrash), 0);
  EXPECT_EQ(job->trials, 60);
  EXPECT_EQ(job->best->record.candidate.decisions[0] % 2, 1);
}

TEST_F(JobTest, JobWithoutSuccessesFailsAndListsOutcomes) {
  device.measure = [](const fleet::LeaseGrant&) {
    record::MeasureResult result;
    result.outcome = record::Outcome::kCompileError;
    return result;
  };
  auto job = RunToEnd(Create(Spec(12)));
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("compile_error 12"));
  EXPECT_THAT(job->error, Not(HasSubstr("hone jobs resume"))) << "it would fail again";
}

TEST_F(JobTest, AnExhaustedSpaceEndsTheJob) {
  JobSpec spec = Spec(1000);
  spec.workload = "fake tiny 2";
  auto job = RunToEnd(Create(spec));
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 8);
  EXPECT_THAT(job->note, HasSubstr("exhausted"));
}

TEST_F(JobTest, AJobThatIsBeingCancelledSaysSo) {
  const std::string id = Create(Spec(1000));
  for (int i = 0; i < 3; ++i) Step(2);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  executor->RunAll();
  EXPECT_EQ(Get(id)->phase, (JobPhase{.kind = PhaseKind::kFinishing, .cancelling = true}));
}

TEST_F(JobTest, TheTimeLimitStopsProposingAndConfirms) {
  JobSpec spec = Spec(0);
  spec.max_time = absl::Seconds(3);
  const std::string id = Create(spec);
  for (int i = 0; i < 200 && !HasEnded(Get(id)->state); ++i) Step(2);
  auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(job->trials, 10);
  EXPECT_LT(job->wall, absl::Seconds(20));
}

TEST_F(JobTest, JobThatFailedOnAFullDiskCanBeResumed) {
  const std::string id = Create(Spec(40));
  for (int i = 0; i < 3; ++i) Step(2);
  store.FailWrites(absl::ResourceExhaustedError("the disk is full"));
  RunToEnd(id);
  ASSERT_EQ(Get(id)->state, JobState::kFailed);
  for (int i = 0; i < 50; ++i) Step();
  const auto resume = [&] {
    absl::Status resumed;
    jobs->Resume(id, 0, absl::ZeroDuration(),
                 [&](SnapshotOr snapshot) { resumed = snapshot.status(); });
    return resumed;
  };
  EXPECT_THAT(resume(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("its end could not be stored: the disk is full; ")));
  store.FailWrites(absl::OkStatus());
  for (int i = 0; i < 50; ++i) Step();
  ASSERT_THAT(resume(), IsOk());
  EXPECT_EQ(RunToEnd(id)->state, JobState::kDone);
}

// A full disk may reject a proposal and then accept its results.
TEST_F(JobTest, ResultsOfAnUnstoredProposalAreNotStored) {
  const std::string id = Create(Spec(40));
  store.Hold();
  store.FailProposals(absl::ResourceExhaustedError("the disk is full"));
  for (int i = 0; i < 4; ++i) Step(2);
  for (int i = 0; i < 200 && !HasEnded(Get(id)->state); ++i) {
    store.Commit();
    Step();
  }
  ASSERT_EQ(Get(id)->state, JobState::kFailed);
  for (const record::Record& record : Screened(id)) EXPECT_TRUE(record.is_default);

  store.FailProposals(absl::OkStatus());
  store.Commit();
  absl::Status resumed = absl::UnknownError("not answered");
  jobs->Resume(id, 0, absl::ZeroDuration(),
               [&](SnapshotOr snapshot) { resumed = snapshot.status(); });
  for (int i = 0; i < 2000 && !HasEnded(Get(id)->state); ++i) {
    store.Commit();
    Step();
  }
  ASSERT_THAT(resumed, IsOk());
  EXPECT_EQ(Get(id)->state, JobState::kDone) << Get(id)->error;
  std::set<int64_t> trials;
  for (const record::Record& record : Screened(id)) {
    EXPECT_TRUE(trials.insert(record.trial).second)
        << "trial " << record.trial << " is recorded twice";
  }
  EXPECT_EQ(trials.size(), 41u);
}

TEST_F(JobTest, WallClockChangesDoNotAffectAJob) {
  JobSpec spec = Spec(60);
  spec.max_time = absl::Seconds(60);
  const std::string id = Create(spec);
  Step(2);
  wall.Advance(absl::Hours(24));
  for (int i = 0; i < 3; ++i) Step(2);
  EXPECT_EQ(Get(id)->state, JobState::kRunning) << "setting the clock is not elapsed time";
  wall.Advance(-absl::Hours(48));
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 60);
  EXPECT_GE(job->wall, absl::ZeroDuration());
  EXPECT_LT(job->wall, absl::Seconds(60));
}

TEST_F(JobTest, CancelWithConfirmationConfirmsTheBest) {
  const std::string id = Create(Spec(400));
  for (int i = 0; i < 5; ++i) Step();
  ASSERT_THAT(jobs->Cancel(id, true), IsOk());
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kCancelled);
  EXPECT_LT(job->trials, 100);
  EXPECT_EQ(job->best->record.policy.name, "confirm");
  EXPECT_THAT(store.LookupBest({.workload_digest = job->workload_digest, .target = "t"}), IsOk());
}

TEST_F(JobTest, CancelWithoutConfirmationKeepsResults) {
  const std::string id = Create(Spec(400));
  for (int i = 0; i < 5; ++i) Step();
  ASSERT_THAT(jobs->Cancel(id, false), IsOk());
  executor->RunAll();
  auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kCancelled);
  EXPECT_EQ(Screened(id).size(), static_cast<size_t>(job->trials) + 1);
  EXPECT_GT(job->trials, 0);
  Step();
  EXPECT_TRUE(device.held.empty()) << "the worker must be told to stop";
  EXPECT_EQ(store.GetJob(id)->state, "cancelled");
}

TEST_F(JobTest, MissingTargetFailsTheJobWithTheReason) {
  JobSpec spec = Spec(20);
  spec.target_key = "other";
  const std::string id = Create(spec);
  for (int i = 0; i < 30 && !HasEnded(Get(id)->state); ++i) {
    Step();
    clock.Advance(absl::Seconds(30));
  }
  EXPECT_EQ(Get(id)->state, JobState::kFailed);
  EXPECT_EQ(Get(id)->error,
            "it waited 600 s for a worker: no worker runs target other; unless one is "
            "starting, start hone-worker on such a machine; \"hone jobs resume " +
                id + "\" continues it");
}

TEST_F(JobTest, AFullDiskFailsTheJobAndAcknowledgesNothing) {
  const std::string id = Create(Spec(50));
  executor->RunAll();
  store.FailWrites(absl::ResourceExhaustedError("the disk is full"));
  auto job = RunToEnd(id, 20);
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_EQ(job->error, "the disk is full; \"hone jobs resume " + id + "\" continues it");
}

TEST_F(JobTest, TheTimeOfAFullDiskDoesNotCount) {
  JobSpec spec = Spec(60);
  spec.max_time = absl::Seconds(60);
  const std::string id = Create(spec);
  for (int i = 0; i < 3; ++i) Step(2);
  store.SetSpace(absl::ResourceExhaustedError("the disk is full"));
  for (int i = 0; i < 100; ++i) {
    Step(2);
    clock.Advance(absl::Seconds(5));
  }
  EXPECT_EQ(Get(id)->state, JobState::kRunning) << Get(id)->error;
  EXPECT_EQ(Get(id)->phase.kind, PhaseKind::kWaitingForSpace);
  EXPECT_EQ(Get(id)->phase.detail, "the disk is full");
  EXPECT_LT(Get(id)->trials, 40);
  store.SetSpace(absl::OkStatus());
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 60);
  EXPECT_LT(job->wall, absl::Seconds(60));
}

TEST_F(JobTest, ARepeatedRequestIsTheSameJob) {
  const std::string first = Create(Spec(20, "same"));
  EXPECT_EQ(Create(Spec(30, "same")), first);
  RunToEnd(first);
  for (int i = 0; i < 3; ++i) Step();
  EXPECT_EQ(Create(Spec(30, "same")), first) << "also after the job has ended";
  EXPECT_NE(Create(Spec(30, "other")), first);
  EXPECT_EQ(jobs->List(10, "")->size(), 2u);
}

}  // namespace
}  // namespace hone::job
