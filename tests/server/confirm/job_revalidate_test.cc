// A job without a search: stored candidates are built and confirmed again.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::HasSubstr;

class JobRevalidateTest : public ::testing::Test, protected JobHarness {
 protected:
  void SetUp() override {
    tuned_ = RunToEnd(Create(Spec(200, "tuned")));
    ASSERT_EQ(tuned_->state, JobState::kDone) << tuned_->error;
    best_ = tuned_->best->record.candidate.decisions;
    device.seen.clear();
  }
  static JobSpec Again(int top, const std::string& request = "again") {
    JobSpec spec = Spec(1, request);
    spec.revalidate = top;
    return spec;
  }
  absl::StatusOr<store::BestRow> Published() {
    return store.LookupBest({.workload_digest = tuned_->workload_digest, .target = "t"});
  }
  void Pin() {
    store.PinBest({.workload_digest = tuned_->workload_digest, .target = "t"}, /*record=*/0,
                  "somebody", [](absl::Status status) { EXPECT_THAT(status, IsOk()); });
  }
  // From now on, the best candidate gets this outcome and latency.
  void Change(record::Outcome outcome, double latency) {
    device.measure = [=, this](const fleet::LeaseGrant& lease) {
      record::MeasureResult result;
      result.latency_ns = FakeLatency(lease.work->decisions);
      if (lease.work->decisions == best_) {
        result.outcome = outcome;
        result.latency_ns = latency;
      }
      if (result.outcome == record::Outcome::kOk) {
        result.samples_ns = {result.latency_ns, result.latency_ns};
      }
      return result;
    };
  }

  std::shared_ptr<const JobSnapshot> tuned_;
  std::vector<int64_t> best_;
};

TEST_F(JobRevalidateTest, KeepsABestThatOnlyDisturbedProcessesMeasured) {
  device.measure = [this](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = FakeLatency(lease.work->decisions) * 1.5;
    result.dispersion = lease.work->decisions == best_ ? 2 : 0;
    result.samples_ns = {result.latency_ns, result.latency_ns};
    return result;
  };
  const auto job = RunToEnd(Create(Again(3)), 2000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Published()->record.id, tuned_->best->record.id);
  EXPECT_EQ(job->best->record.id, tuned_->best->record.id);
  EXPECT_THAT(job->note, HasSubstr("the best stays as it was"));
}

TEST_F(JobRevalidateTest, RebuildsTopCandidatesAndRepublishesTheWinner) {
  const std::string id = Create(Again(3));
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 3) << "the confirmed candidates";
  EXPECT_EQ(job->quarantined, 0);
  std::set<std::vector<int64_t>> seen;
  int built = 0;
  for (const fleet::LeaseGrant& lease : device.seen) {
    EXPECT_EQ(lease.work->policy.name, "confirm");
    seen.insert(lease.work->decisions);
    built += lease.build ? 1 : 0;
  }
  EXPECT_EQ(seen.size(), 3u);
  EXPECT_TRUE(seen.contains(best_));
  EXPECT_EQ(built, 3) << "the stored artifacts are from an older code generator";
  ASSERT_THAT(Published(), IsOk());
  EXPECT_GT(Published()->record.id, tuned_->best->record.id) << "the same winner with a new record";
  EXPECT_EQ(Published()->record.job_id, id);
  EXPECT_EQ(Published()->record.candidate.decisions, best_);
}

TEST_F(JobRevalidateTest, ADefaultScheduleStaysTheDefault) {
  best_ = tuned_->default_schedule->record.candidate.decisions;
  Change(record::Outcome::kOk, 1);
  for (const char* request : {"first", "second"}) {
    const std::string id = Create(Again(300, request));
    const auto job = RunToEnd(id, 20'000);
    ASSERT_EQ(job->state, JobState::kDone) << job->error;
    ASSERT_EQ(Published()->record.job_id, id);
    EXPECT_EQ(Published()->record.candidate.decisions, best_);
    EXPECT_TRUE(Published()->record.is_default) << request;
    EXPECT_EQ(Published()->record.trial, record::kNoTrial) << "another job has found it";
  }
}

// As after an import, which publishes nothing. A single process of a confirmation is not its
// result.
TEST_F(JobRevalidateTest, WithoutAPublishedBestThatOfAnImportedConfirmationIsUsed) {
  const auto done = [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); };
  store.Quarantine(tuned_->workload_digest, "t", tuned_->best->record.candidate, 1 << 20,
                   "a reason", done);
  ASSERT_THAT(Published(), StatusIs(absl::StatusCode::kNotFound));
  record::Record lucky = tuned_->best->record;
  lucky.candidate.decisions = {11, 11, 11};
  lucky.policy.name = "screen";
  lucky.result.latency_ns = 1;
  store.Append(lucky,
               [](const absl::StatusOr<record::Record>& stored) { EXPECT_THAT(stored, IsOk()); });
  record::Record single = lucky;
  single.candidate.decisions = {10, 10, 10};
  single.policy.name = "confirm";
  single.result.processes = 0;
  record::Record imported = tuned_->best->record;
  imported.candidate.decisions = {9, 9, 9};
  imported.result.latency_ns = 500;
  for (const record::Record& record : {single, imported}) {
    store.Append(record,
                 [](const absl::StatusOr<record::Record>& stored) { EXPECT_THAT(stored, IsOk()); });
  }
  const auto bests = *store.Query(
      {.workload_digest = tuned_->workload_digest, .target = "t", .unpublished_best = true});
  ASSERT_EQ(bests.size(), 1u);
  EXPECT_EQ(bests[0].candidate, imported.candidate);
  const auto job = RunToEnd(Create(Again(1)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  for (const fleet::LeaseGrant& lease : device.seen) {
    EXPECT_EQ(lease.work->decisions, bests[0].candidate.decisions);
  }
  EXPECT_EQ(Published()->record.candidate.decisions, bests[0].candidate.decisions);
}

TEST_F(JobRevalidateTest, SlowerPublishedBestIsReplaced) {
  Change(record::Outcome::kOk, 900);
  auto job = RunToEnd(Create(Again(3)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_NE(Published()->record.candidate.decisions, best_);
  EXPECT_EQ(job->quarantined, 0);
}

TEST_F(JobRevalidateTest, PinnedBestIsNotBuiltAgain) {
  Pin();
  Change(record::Outcome::kOk, 900);
  auto job = RunToEnd(Create(Again(3)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Published()->record.id, tuned_->best->record.id);
  EXPECT_EQ(job->best->record.id, tuned_->best->record.id);
  EXPECT_GT(job->best->pinned_unix_ms, 0);
}

TEST_F(JobRevalidateTest, WrongPinnedBestIsWithdrawn) {
  Pin();
  Change(record::Outcome::kWrongOutput, 0);
  auto job = RunToEnd(Create(Again(2)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_NE(Published()->record.candidate.decisions, best_);
  EXPECT_EQ(Published()->pin, store::Pin());
  EXPECT_EQ(job->best->pinned_unix_ms, 0);
}

TEST_F(JobRevalidateTest, ForgottenRecordsAreNotMeasuredAgain) {
  store.Forget(
      {.workload_digest = tuned_->workload_digest, .target = "t"}, "forgotten",
      [](const absl::StatusOr<store::Forgotten>& forgotten) { EXPECT_THAT(forgotten, IsOk()); });
  auto job = RunToEnd(Create(Again(2)));
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("no working candidate"));
  // The search proposes the same candidates again, as if none were known.
  const auto fresh = RunToEnd(Create(Spec(200, "fresh")));
  ASSERT_EQ(fresh->state, JobState::kDone) << fresh->error;
  EXPECT_EQ(fresh->best->record.job_id, fresh->id);
  EXPECT_EQ(fresh->best->record.candidate.decisions, best_);
}

TEST_F(JobRevalidateTest, WrongBestIsQuarantinedAndTheNextPublished) {
  Change(record::Outcome::kWrongOutput, 0);
  auto job = RunToEnd(Create(Again(2)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->quarantined, 1);
  EXPECT_NE(Published()->record.candidate.decisions, best_);
  int marked = 0;
  const auto records = store.Query({.page_size = 1000}).value();
  for (const record::Record& record : records) {
    if (record.candidate.decisions != best_ || record.job_id == job->id) continue;
    EXPECT_TRUE(record.quarantined);
    ++marked;
  }
  EXPECT_GT(marked, 0);
}

TEST_F(JobRevalidateTest, NothingIsPublishedIfAllFail) {
  Change(record::Outcome::kInvalid, 0);
  auto job = RunToEnd(Create(Again(1)));
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("no finalist could be confirmed"));
  EXPECT_THAT(Published(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(JobRevalidateTest, TimeoutDoesNotQuarantine) {
  Change(record::Outcome::kRunTimeout, 0);
  auto job = RunToEnd(Create(Again(2)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->quarantined, 0);
}

TEST_F(JobRevalidateTest, AnotherProgramOfTheSameTraceMakesTheOldRecordsStale) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    result.facts.program_digest = "new";
    return result;
  };
  // The screened results have no digest. The first revalidation stores one.
  auto first = RunToEnd(Create(Again(1, "first")));
  ASSERT_EQ(first->state, JobState::kDone) << first->error;
  EXPECT_EQ(first->quarantined, 0);
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    result.facts.program_digest = "newer";
    return result;
  };
  auto second = RunToEnd(Create(Again(1, "second")));
  ASSERT_EQ(second->state, JobState::kDone) << second->error;
  EXPECT_EQ(second->quarantined, 1);
  EXPECT_EQ(Published()->record.job_id, second->id);
  EXPECT_FALSE(Published()->record.quarantined);
}

TEST_F(JobRevalidateTest, AJobWithoutStoredCandidatesFails) {
  JobSpec spec = Again(3, "unknown");
  spec.workload = "fake op 99";
  auto job = RunToEnd(Create(spec));
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("tune it first"));
}

TEST_F(JobRevalidateTest, RestartStartsOver) {
  const std::string id = Create(Again(3));
  Step();
  Restart();
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Published()->record.job_id, id);
}

}  // namespace
}  // namespace hone::job
