// The results and models of other workloads that a job uses.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/search/transfer.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

class JobTransferTest : public ::testing::Test, protected JobHarness {
 protected:
  // The spec of a job for the workload "fake NAME SIZE". Names with the same first letter are
  // related.
  static JobSpec SpecOf(const std::string& workload, int64_t trials, const std::string& request) {
    JobSpec spec = Spec(trials, request);
    spec.workload = workload;
    spec.transfer = true;
    return spec;
  }
  // The candidates of a job in the order in which they were started, without the default.
  std::vector<std::vector<int64_t>> Screened(const std::string& job) {
    std::vector<std::vector<int64_t>> decisions;
    for (const fleet::LeaseGrant& lease : device.seen) {
      if (lease.work->job_id == job && lease.work->policy.name == "screen" &&
          !lease.work->decisions.empty())
        decisions.push_back(lease.work->decisions);
    }
    return decisions;
  }
  absl::StatusOr<Transfer> Gather(const std::string& workload, int64_t up_to = -1) {
    const auto spaces = *environment.Open(workload, "", "", 0);
    return GatherTransfer(
        store, environment, *spaces,
        {.workload = *environment.Describe(workload), .target_key = "t", .up_to_record = up_to});
  }
};

TEST_F(JobTransferTest, TheBestOfARelatedWorkloadIsTriedFirst) {
  auto first = RunToEnd(Create(SpecOf("fake op 8", 200, "source")));
  ASSERT_EQ(first->state, JobState::kDone) << first->error;
  const auto best = first->best->record.candidate.decisions;
  const std::string id = Create(SpecOf("fake op 16", 20, "target"));
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Screened(id)[0], best);
  EXPECT_LE(job->best->record.result.latency_ns, first->best->record.result.latency_ns);
}

TEST_F(JobTransferTest, WithoutTransferAJobStartsCold) {
  RunToEnd(Create(SpecOf("fake op 8", 200, "source")));
  JobSpec spec = SpecOf("fake op 16", 20, "without");
  spec.transfer = JobSpec().transfer;
  const std::string with = Create(SpecOf("fake op 16", 20, "with"));
  RunToEnd(with);
  // The same job on an empty store.
  JobHarness fresh;
  const std::string alone = fresh.Create(SpecOf("fake op 16", 20, "alone"));
  fresh.RunToEnd(alone);
  std::vector<std::vector<int64_t>> expected;
  for (const fleet::LeaseGrant& lease : fresh.device.seen) {
    if (lease.work->policy.name == "screen" && !lease.work->decisions.empty())
      expected.push_back(lease.work->decisions);
  }
  EXPECT_NE(Screened(with), expected);
  JobHarness other;
  other.RunToEnd(other.Create(SpecOf("fake op 8", 200, "source")));
  other.device.seen.clear();
  other.RunToEnd(other.Create(spec));
  std::vector<std::vector<int64_t>> without;
  for (const fleet::LeaseGrant& lease : other.device.seen) {
    if (lease.work->policy.name == "screen" && !lease.work->decisions.empty())
      without.push_back(lease.work->decisions);
  }
  EXPECT_EQ(without, expected);
}

TEST_F(JobTransferTest, UnrelatedWorkloadsAreNotTransferred) {
  RunToEnd(Create(SpecOf("fake other 8", 100, "source")));
  HONE_ASSERT_OK_AND_ASSIGN(const auto transfer, Gather("fake pool 12"));
  EXPECT_TRUE(transfer.empty());
  EXPECT_GT(transfer.last_record, 0);
}

TEST_F(JobTransferTest, SeedsAreAdaptedFromTheNearestWorkloads) {
  RunToEnd(Create(SpecOf("fake op 64", 100, "far")));
  auto near = RunToEnd(Create(SpecOf("fake op 8", 100, "near")));
  HONE_ASSERT_OK_AND_ASSIGN(const auto transfer, Gather("fake op 4"));
  ASSERT_TRUE(!transfer.seeds.empty());
  EXPECT_EQ(transfer.workloads, 2);
  EXPECT_EQ(transfer.results, 202) << "with the default schedules";
  std::vector<int64_t> fitting = near->best->record.candidate.decisions;
  for (int64_t& decision : fitting) decision = std::min<int64_t>(decision, 3);
  EXPECT_EQ(transfer.seeds[0].decisions, fitting);
  const std::string own = (*environment.Open("fake op 4", "", "", 0))->spaces()[0].digest;
  for (const record::Candidate& seed : transfer.seeds) EXPECT_EQ(seed.space_digest, own);
  double best = 0;
  for (const Transfer::Space& space : transfer.spaces) {
    ASSERT_EQ(space.scores.size(), space.decisions.size());
    for (const double score : space.scores) {
      EXPECT_GE(score, 0);
      EXPECT_LE(score, 1);
      best = std::max(best, score);
    }
  }
  EXPECT_EQ(best, 1);
}

TEST_F(JobTransferTest, LaterRecordsAreLeftOut) {
  RunToEnd(Create(SpecOf("fake op 8", 50, "a")));
  const auto before = Gather("fake op 12");
  RunToEnd(Create(SpecOf("fake op 10", 50, "b")));
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, Gather("fake op 12", before->last_record));
  ASSERT_THAT(before, IsOk());
  EXPECT_EQ(again.seeds, before->seeds);
  EXPECT_EQ(again.results, before->results);
  EXPECT_GT(Gather("fake op 12")->results, before->results);
  EXPECT_TRUE(Gather("fake op 12", 0)->empty());
}

TEST_F(JobTransferTest, RestartedJobIgnoresLaterRecords) {
  RunToEnd(Create(SpecOf("fake op 8", 100, "source")));
  const std::string id = Create(SpecOf("fake op 16", 120, "target"));
  for (int i = 0; i < 6; ++i) Step();
  ASSERT_FALSE(HasEnded(Get(id)->state));
  const std::string meanwhile = Create(SpecOf("fake op 20", 30, "meanwhile"));
  for (int i = 0; i < 6; ++i) Step();
  Restart();
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  // Its events still replay: the search was not restarted.
  int64_t number = 0;
  std::vector<int64_t> transfers;
  const auto events = store.Events(id).value();
  for (const store::JobEvent& event : events) {
    EXPECT_EQ(event.number, number++);
    if (event.kind == kProposeKind) transfers.push_back(DecodePropose(event)->transfer_record);
  }
  ASSERT_FALSE(transfers.empty());
  EXPECT_GT(transfers[0], 0);
  for (const int64_t transfer : transfers) EXPECT_EQ(transfer, transfers[0]);
}

TEST_F(JobTransferTest, QuarantinedRecordsAreNotTransferred) {
  auto source = RunToEnd(Create(SpecOf("fake op 8", 60, "source")));
  ASSERT_EQ(Gather("fake op 12")->seeds[0].decisions, source->best->record.candidate.decisions);
  const record::Candidate best = source->best->record.candidate;
  absl::Status done = absl::UnknownError("not called");
  store.Quarantine(source->workload_digest, "t", best, 1'000'000, "a reason",
                   [&](absl::Status status) { done = status; });
  ASSERT_THAT(done, IsOk());
  for (const record::Candidate& seed : Gather("fake op 12")->seeds)
    EXPECT_NE(seed.decisions, best.decisions);
}

class JobStoredModelTest : public JobTransferTest {
 protected:
  // Stores a model that prefers candidates near `liked`, and returns its row.
  int64_t Store(const std::vector<int64_t>& liked, const std::string& scope,
                const std::string& target = "t") {
    const auto model = *environment.CreateModel("nearest", {});
    cost_model::FeatureMatrix features{.columns = 3};
    std::vector<double> throughput;
    for (int64_t i = 0; i < 512; ++i) {
      const int64_t decisions[] = {i / 64, i / 8 % 8, i % 8};
      int64_t distance = 0;
      for (size_t d = 0; d < 3; ++d) distance += std::abs(decisions[d] - liked[d]);
      features.Append(std::vector<float>(decisions, decisions + 3), 1);
      throughput.push_back(1.0 / static_cast<double>(1 + distance));
    }
    EXPECT_THAT(model->Update(features, throughput), IsOk());
    return StoreBytes(*model->Save(), scope, target);
  }
  int64_t StoreBytes(std::string bytes, const std::string& scope, const std::string& target = "t") {
    int64_t row = 0;
    store.PutModel(
        {.key = {.name = "nearest", .feature_set = "decisions", .target = target, .scope = scope},
         .version = 7,
         .bytes = std::move(bytes)},
        [&](absl::StatusOr<int64_t> id) { row = id.value_or(-1); });
    EXPECT_GT(row, 0);
    return row;
  }
  // The average distance from `liked` of the first four candidates of a job.
  double DistanceOfTheFirst(const std::string& job, const std::vector<int64_t>& liked) {
    double sum = 0;
    const auto screened = Screened(job);
    for (size_t i = 0; i < 4; ++i) {
      for (size_t d = 0; d < 3; ++d) {
        sum += std::abs(static_cast<double>(screened[i][d] - liked[d]));
      }
    }
    return sum / 4;
  }
  // The row ids of the models that the proposals of a job used.
  std::vector<int64_t> ModelsOf(const std::string& job) {
    std::vector<int64_t> rows;
    const auto events = store.Events(job).value();
    for (const store::JobEvent& event : events) {
      if (event.kind == kProposeKind) rows.push_back(DecodePropose(event)->transfer_model);
    }
    EXPECT_FALSE(rows.empty());
    return rows;
  }
};

const std::vector<int64_t> kLiked = {6, 6, 6};

TEST_F(JobStoredModelTest, RanksTheFirstCandidates) {
  const int64_t row = Store(kLiked, "");
  const std::string with = Create(SpecOf("fake op 8", 60, "with"));
  auto job = RunToEnd(with);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_THAT(ModelsOf(with), testing::Each(row));
  EXPECT_LT(DistanceOfTheFirst(with, kLiked), 4);
  // The influence of the model fades: the measurements found a better candidate.
  EXPECT_LT(job->best->record.result.latency_ns, FakeLatency(kLiked));
}

TEST_F(JobStoredModelTest, IsNotUsedWithoutTransfer) {
  Store(kLiked, "");
  JobSpec spec = SpecOf("fake op 8", 20, "without");
  spec.transfer = JobSpec().transfer;
  const std::string without = Create(spec);
  RunToEnd(without);
  EXPECT_THAT(ModelsOf(without), testing::Each(0));
  EXPECT_GT(DistanceOfTheFirst(without, kLiked), 4);
}

TEST_F(JobStoredModelTest, OperatorModelPrecedesTheGeneralOne) {
  const int64_t own = Store(kLiked, "op");
  Store({0, 0, 0}, "");
  Store({0, 0, 0}, "other");
  const std::string job = Create(SpecOf("fake op 8", 20, "job"));
  RunToEnd(job);
  EXPECT_THAT(ModelsOf(job), testing::Each(own));
  EXPECT_LT(DistanceOfTheFirst(job, kLiked), 4);
}

TEST_F(JobStoredModelTest, IgnoresModelsOfOtherTargetsAndDamagedOnes) {
  Store(kLiked, "", "another target");
  const std::string job = Create(SpecOf("fake op 8", 20, "job"));
  ASSERT_EQ(RunToEnd(job)->state, JobState::kDone);
  EXPECT_THAT(ModelsOf(job), testing::Each(0));
  StoreBytes("no model", "");
  const std::string damaged = Create(SpecOf("fake zap 8", 20, "damaged"));
  ASSERT_EQ(RunToEnd(damaged)->state, JobState::kDone);
  EXPECT_THAT(ModelsOf(damaged), testing::Each(0));
}

TEST_F(JobStoredModelTest, RestartedJobKeepsItsModel) {
  const int64_t row = Store(kLiked, "");
  const std::string id = Create(SpecOf("fake op 16", 120, "target"));
  for (int i = 0; i < 6; ++i) Step();
  ASSERT_FALSE(HasEnded(Get(id)->state));
  Store({0, 0, 0}, "");
  Restart();
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_THAT(ModelsOf(id), testing::Each(row));
  int64_t number = 0;
  const auto events = store.Events(id).value();
  for (const store::JobEvent& event : events) EXPECT_EQ(event.number, number++);
}

}  // namespace
}  // namespace hone::job
