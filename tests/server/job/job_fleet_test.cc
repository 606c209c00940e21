// Jobs and the limits of the fleet: queue space, quotas, priorities, and implausible workers.

#include <algorithm>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/fleet/lease_book.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;

TEST(JobRoomTest, JobWaitsForQueueSpaceAndFinishes) {
  JobHarness harness(JobHarness::DefaultOptions(), {.max_items_per_owner = 3});
  const std::string id = harness.Create(JobHarness::Spec(40));
  bool waited = false;
  for (int i = 0; i < 1000 && !HasEnded(harness.Get(id)->state); ++i) {
    harness.Step();
    waited = waited || harness.Get(id)->phase.kind == PhaseKind::kWaitingForCapacity;
  }
  EXPECT_EQ(harness.Get(id)->state, JobState::kDone) << harness.Get(id)->error;
  EXPECT_EQ(harness.Get(id)->trials, 40);
  EXPECT_TRUE(waited);
}

TEST(JobPriorityTest, NamesAreThePrioritiesOfTheFleet) {
  EXPECT_EQ(PriorityOf("low"), fleet::kLowPriority);
  EXPECT_EQ(PriorityOf("normal"), fleet::kNormalPriority);
  EXPECT_EQ(PriorityOf("high"), fleet::kHighPriority);
}

TEST(JobQuotaTest, LimitsJobsPerOwnerAndReportsTheLimit) {
  JobOptions options = JobHarness::DefaultOptions();
  options.max_jobs_per_owner = 2;
  options.max_jobs = 3;
  JobHarness harness(options);
  const auto create = [&](const std::string& owner, const std::string& request) {
    JobSpec spec = JobHarness::Spec(20, request);
    spec.owner = owner;
    absl::Status status;
    harness.jobs->Create(std::move(spec), [&](SnapshotOr snapshot) { status = snapshot.status(); });
    return status;
  };
  EXPECT_THAT(create("ann", "1"), IsOk());
  EXPECT_THAT(create("ann", "2"), IsOk());
  EXPECT_THAT(create("ann", "3"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("'ann' has 2 jobs")));
  EXPECT_THAT(create("ann", "2"), IsOk()) << "a repeated request is answered";
  EXPECT_THAT(create("bob", "4"), IsOk());
  EXPECT_THAT(std::string(create("eve", "5").message()), HasSubstr("3 jobs are in progress"));
  for (int i = 0; i < 500 && !harness.jobs->Unfinished().empty(); ++i) harness.Step();
  EXPECT_THAT(create("ann", "6"), IsOk()) << "jobs that have ended do not count";
}

TEST(JobQuotaTest, AResumedJobCounts) {
  JobOptions options = JobHarness::DefaultOptions();
  options.max_jobs_per_owner = 1;
  JobHarness harness(options);
  JobSpec spec = JobHarness::Spec(20, "1");
  spec.owner = "ann";
  const std::string first = harness.Create(spec);
  const auto end = [&](const std::string& id) {
    ASSERT_THAT(harness.jobs->Cancel(id, /*confirm=*/false), IsOk());
    for (int i = 0; i < 500 && !harness.jobs->Unfinished().empty(); ++i) harness.Step();
    for (int i = 0; i < 3; ++i) harness.Step();  // until its end is stored
  };
  end(first);
  spec.request_id = "2";
  const std::string second = harness.Create(spec);
  const auto resume = [&] {
    absl::Status status = absl::UnknownError("there is no answer");
    harness.jobs->Resume(first, 0, absl::ZeroDuration(),
                         [&](const SnapshotOr& job) { status = job.status(); });
    return status;
  };
  EXPECT_THAT(resume(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("'ann' has 1 job")));
  end(second);
  EXPECT_THAT(resume(), IsOk());
}

TEST(JobQuotaTest, ReservationCountsUntilReleased) {
  JobOptions options = JobHarness::DefaultOptions();
  options.max_jobs_per_owner = 2;
  JobHarness harness(options);
  JobSpec spec = JobHarness::Spec(20, "1");
  spec.owner = "ann";
  std::shared_ptr<void> place = harness.jobs->Reserve(spec).value();
  spec.request_id = "2";
  const std::string id = harness.Create(spec);
  EXPECT_THAT(harness.jobs->Reserve(spec), IsOk()) << "a repeated request needs no reservation";
  spec.request_id = "3";
  EXPECT_THAT(harness.jobs->Reserve(spec), StatusIs(absl::StatusCode::kResourceExhausted));
  place.reset();
  EXPECT_THAT(harness.jobs->Reserve(spec), IsOk());
}

// A call that has waited for a worker holds its place until its job has it.
TEST(JobQuotaTest, TheJobTakesTheReservedPlace) {
  JobOptions options = JobHarness::DefaultOptions();
  options.max_jobs_per_owner = 1;
  for (const char* const request : {"1", ""}) {
    JobHarness harness(options);
    JobSpec spec = JobHarness::Spec(20, request);
    spec.owner = "ann";
    std::shared_ptr<void> place = harness.jobs->Reserve(spec).value();
    absl::Status created = absl::UnknownError("no answer");
    const auto done = [&](const SnapshotOr& job) { created = job.status(); };
    JobSpec other = JobHarness::Spec(20, "2");
    other.owner = "ann";
    harness.jobs->Create(other, done);
    EXPECT_THAT(created, StatusIs(absl::StatusCode::kResourceExhausted)) << request;
    harness.jobs->Create(spec, done, std::move(place));
    EXPECT_THAT(created, IsOk()) << request;
    EXPECT_EQ(harness.jobs->Unfinished().size(), 1u);
    EXPECT_THAT(harness.jobs->Reserve(other), StatusIs(absl::StatusCode::kResourceExhausted));
    harness.jobs->CancelHeld(harness.jobs->Unfinished().front());
    harness.executor->RunAll();
    EXPECT_THAT(harness.jobs->Reserve(other), IsOk()) << "the place went with the job";
  }
}

TEST(JobQuotaTest, RetriedRequestSharesOneReservation) {
  JobOptions options = JobHarness::DefaultOptions();
  options.max_jobs_per_owner = 2;
  JobHarness harness(options);
  JobSpec spec = JobHarness::Spec(20, "1");
  spec.owner = "ann";
  JobSpec other = JobHarness::Spec(20, "2");
  other.owner = "ann";
  std::shared_ptr<void> first = harness.jobs->Reserve(spec).value();
  std::shared_ptr<void> retry = harness.jobs->Reserve(spec).value();
  std::shared_ptr<void> second = harness.jobs->Reserve(other).value();
  EXPECT_THAT(harness.jobs->Reserve(spec), IsOk());
  JobSpec third = JobHarness::Spec(20, "3");
  third.owner = "ann";
  EXPECT_THAT(harness.jobs->Reserve(third), StatusIs(absl::StatusCode::kResourceExhausted));
  first.reset();  // the retry still waits and does not count against its own job
  const std::string id = harness.Create(spec);
  retry.reset();
  EXPECT_EQ(harness.Create(spec), id);
  EXPECT_THAT(harness.jobs->Reserve(third), StatusIs(absl::StatusCode::kResourceExhausted));
  second.reset();
  EXPECT_THAT(harness.jobs->Reserve(third), IsOk());
}

TEST(JobQuotaTest, StoredRequestNeedsNoReservation) {
  JobOptions options = JobHarness::DefaultOptions();
  options.max_jobs_per_owner = 1;
  JobHarness harness(options);
  JobSpec spec = JobHarness::Spec(20, "1");
  spec.owner = "ann";
  const std::string id = harness.Create(spec);
  for (int i = 0; i < 500 && !harness.jobs->Unfinished().empty(); ++i) harness.Step();
  JobSpec other = JobHarness::Spec(20, "2");
  other.owner = "ann";
  harness.Create(other);
  EXPECT_THAT(harness.jobs->Reserve(spec), IsOk());
  EXPECT_EQ(harness.Create(spec), id);
}

// The device measures latencies of at least 100 ns, and its peak is 50 operations per nanosecond.
TEST(PeakTest, FewerOperationsNeedATolerance) {
  for (const double tolerance : {0.0, 1e-3}) {
    JobHarness harness;
    harness.environment.fixed_flops = 1e9;
    JobSpec spec = JobHarness::Spec(20);
    spec.tolerance = tolerance;
    const std::string id = harness.Create(std::move(spec));
    for (int i = 0; i < 20; ++i) harness.Step();
    EXPECT_EQ(harness.fleet->Workers().at(0).flagged.empty(), tolerance > 0) << tolerance;
    EXPECT_EQ(harness.Get(id)->trials > 0, tolerance > 0) << tolerance;
  }
}

class SpotCheckTest : public ::testing::Test, protected JobHarness {
 protected:
  // Runs a job whose finalists `device` confirms. The checkers connect once the confirmation
  // begins.
  std::shared_ptr<const JobSnapshot> RunWith(std::vector<FakeDevice*> checkers) {
    const std::string id = Create(Spec(30));
    for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) Step();
    others = std::move(checkers);
    return RunToEnd(id, 3000);
  }
  std::string FlagOf(const std::string& id) const {
    for (const fleet::WorkerInfo& worker : fleet->Workers()) {
      if (worker.id == id) return worker.flagged;
    }
    return "no such worker";
  }
};

TEST_F(SpotCheckTest, NewBestRunsOnASecondWorkerFirst) {
  FakeDevice second("1", "second");
  auto job = RunWith({&second});
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  const auto ran = std::count_if(second.seen.begin(), second.seen.end(), [&](const auto& lease) {
    return lease.artifact_digest == job->best->record.result.artifact_digest && !lease.build;
  });
  EXPECT_EQ(ran, 1);
  EXPECT_EQ(FlagOf("device"), "");
  EXPECT_EQ(FlagOf("second"), "");
}

TEST_F(SpotCheckTest, WrongResultIsNotPublishedAndFlagsTheClaimant) {
  FakeDevice second("1", "second");
  second.measure = [](const fleet::LeaseGrant&) {
    record::MeasureResult wrong;
    wrong.outcome = record::Outcome::kWrongOutput;
    wrong.detail = "element 7";
    return wrong;
  };
  auto job = RunWith({&second});
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("element 7"));
  EXPECT_FALSE(job->own_best.has_value()) << "another worker found every finalist wrong";
  EXPECT_GE(job->quarantined, 1);
  EXPECT_THAT(FlagOf("device"), HasSubstr("wrong_output"));
  EXPECT_FALSE(store.LookupBest({.workload_digest = job->workload_digest, .target = "t"}).ok());
}

TEST_F(SpotCheckTest, KilledCheckerAccusesNobody) {
  FakeDevice second("1", "second");
  second.measure = [](const fleet::LeaseGrant&) {
    record::MeasureResult killed;
    killed.outcome = record::Outcome::kOutOfMemory;
    return killed;
  };
  auto job = RunWith({&second});
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(FlagOf("device"), "");
  EXPECT_EQ(FlagOf("second"), "");
  EXPECT_THAT(store.LookupBest({.workload_digest = job->workload_digest, .target = "t"}), IsOk());
}

TEST_F(SpotCheckTest, UnreproducibleLatencyIsNotPublished) {
  FakeDevice second("1", "second");
  second.measure = [](const fleet::LeaseGrant& lease) {
    return Took(10 * FakeLatency(lease.work->decisions));
  };
  auto job = RunWith({&second});
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(FlagOf("device"), HasSubstr("measures"));
}

TEST_F(SpotCheckTest, AThirdWorkerDecidesBetweenTwo) {
  FakeDevice liar("1", "liar");
  liar.measure = [](const fleet::LeaseGrant&) {
    record::MeasureResult wrong;
    wrong.outcome = record::Outcome::kWrongOutput;
    return wrong;
  };
  FakeDevice third("1", "third");
  auto job = RunWith({&liar, &third});
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(FlagOf("device"), "");
  EXPECT_THAT(FlagOf("liar"), HasSubstr("wrong_output"));
}

TEST_F(SpotCheckTest, SilentCheckerDelaysPublicationForABoundedTime) {
  FakeDevice second("1", "second");
  const std::string id = Create(Spec(30));
  for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) Step();
  second.Step(*fleet, *artifacts, 0);
  for (int i = 0; i < 3000 && !HasEnded(Get(id)->state); ++i) {
    Step();
    second.Step(*fleet, *artifacts, 0);  // calls, but never finishes anything
  }
  EXPECT_EQ(Get(id)->state, JobState::kDone) << Get(id)->error;
}

// The checker is asked, and makes no more calls. It counts as connected for some time.
TEST_F(SpotCheckTest, DeadCheckerIsNotWaitedFor) {
  FakeDevice second("1", "second");
  const std::string id = Create(Spec(30));
  const JobPhase checks{PhaseKind::kCheckingWinner, "second"};
  for (int i = 0; i < 500 && Get(id)->phase != checks; ++i) {
    Step();
    if (Get(id)->state == JobState::kConfirming) second.Step(*fleet, *artifacts, 0);
  }
  ASSERT_EQ(Get(id)->phase, checks);
  const absl::Time died = clock.Now();
  const auto job = RunToEnd(id, 3000);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(clock.Now() - died, absl::Seconds(5)) << "it may be only slow";
  EXPECT_LT(clock.Now() - died, absl::Seconds(12));
}

// The first checker is silent for a while. Then it disagrees, after the next one was asked.
TEST_F(SpotCheckTest, ALateAnswerIsNotThatOfTheNextChecker) {
  FakeDevice late("1", "late"), third("1", "third");
  late.measure = [](const fleet::LeaseGrant&) {
    record::MeasureResult wrong;
    wrong.outcome = record::Outcome::kWrongOutput;
    return wrong;
  };
  const std::string id = Create(Spec(30));
  const auto asks = [&](const char* worker) {
    return Get(id)->phase == JobPhase{PhaseKind::kCheckingWinner, worker};
  };
  for (int i = 0; i < 500 && !asks("late"); ++i) {
    Step();
    if (Get(id)->state == JobState::kConfirming) late.Step(*fleet, *artifacts, 0);
  }
  ASSERT_TRUE(asks("late"));
  for (int i = 0; i < 300 && !asks("third"); ++i) {
    Step();
    third.Step(*fleet, *artifacts, 0);
  }
  ASSERT_TRUE(asks("third"));
  late.Step(*fleet, *artifacts);
  Step();
  EXPECT_TRUE(asks("third"));
  others = {&late, &third};
  const auto job = RunToEnd(id, 3000);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(FlagOf("device"), "");
}

TEST_F(SpotCheckTest, ACancelEndsTheWaitForTheChecker) {
  FakeDevice second("1", "second");
  const std::string id = Create(Spec(30));
  for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) Step();
  for (int i = 0; i < 100; ++i) {
    Step();
    second.Step(*fleet, *artifacts, 0);  // calls, but never finishes anything
  }
  ASSERT_FALSE(HasEnded(Get(id)->state));
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const absl::Time cancelled = clock.Now();
  for (int i = 0; i < 3000 && !HasEnded(Get(id)->state); ++i) {
    Step();
    second.Step(*fleet, *artifacts, 0);
  }
  EXPECT_EQ(Get(id)->state, JobState::kCancelled);
  EXPECT_LT(clock.Now() - cancelled, absl::Seconds(32));
  EXPECT_THAT(store.LookupBest({.workload_digest = Get(id)->workload_digest, .target = "t"}),
              IsOk());
}

}  // namespace
}  // namespace hone::job
