// What a job takes over from other workloads of its target.

#include "gtest/gtest.h"
#include "server/task/transfer.h"
#include "tests/server/task/job_harness.h"

namespace hone::task {
namespace {

class JobTransferTest : public ::testing::Test, protected JobHarness {
 protected:
  // Of the workload "fake NAME SIZE"; names with the same first letter are related.
  static JobSpec SpecOf(const std::string& workload, int64_t trials, const std::string& request) {
    JobSpec spec = Spec(trials, request);
    spec.workload = workload;
    return spec;
  }
  // The candidates of a job in the order in which they were begun, without the default.
  std::vector<std::vector<int64_t>> Screened(const std::string& job) {
    std::vector<std::vector<int64_t>> decisions;
    for (const fleet::LeaseGrant& lease : device.seen) {
      if (lease.job_id == job && lease.policy.name == "screen" && !lease.decisions.empty())
        decisions.push_back(lease.decisions);
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

TEST_F(JobTransferTest, NoTransferBeginsFromNothing) {
  RunToEnd(Create(SpecOf("fake op 8", 200, "source")));
  JobSpec spec = SpecOf("fake op 16", 20, "without");
  spec.transfer = false;
  const std::string with = Create(SpecOf("fake op 16", 20, "with"));
  RunToEnd(with);
  // The same job on a store that knows nothing.
  JobHarness fresh;
  const std::string alone = fresh.Create(SpecOf("fake op 16", 20, "alone"));
  fresh.RunToEnd(alone);
  std::vector<std::vector<int64_t>> expected;
  for (const fleet::LeaseGrant& lease : fresh.device.seen) {
    if (lease.policy.name == "screen" && !lease.decisions.empty())
      expected.push_back(lease.decisions);
  }
  EXPECT_NE(Screened(with), expected);
  JobHarness other;
  other.RunToEnd(other.Create(SpecOf("fake op 8", 200, "source")));
  other.device.seen.clear();
  other.RunToEnd(other.Create(spec));
  std::vector<std::vector<int64_t>> without;
  for (const fleet::LeaseGrant& lease : other.device.seen) {
    if (lease.policy.name == "screen" && !lease.decisions.empty())
      without.push_back(lease.decisions);
  }
  EXPECT_EQ(without, expected);
}

TEST_F(JobTransferTest, UnrelatedWorkloadsTeachNothing) {
  RunToEnd(Create(SpecOf("fake other 8", 100, "source")));
  const auto transfer = Gather("fake pool 12");
  ASSERT_TRUE(transfer.ok()) << transfer.status();
  EXPECT_TRUE(transfer->empty());
  EXPECT_GT(transfer->last_record, 0);
}

TEST_F(JobTransferTest, SeedsComeFromTheNearestAndAreAdapted) {
  RunToEnd(Create(SpecOf("fake op 64", 100, "far")));
  auto near = RunToEnd(Create(SpecOf("fake op 8", 100, "near")));
  const auto transfer = Gather("fake op 4");
  ASSERT_TRUE(transfer.ok() && !transfer->seeds.empty());
  EXPECT_EQ(transfer->workloads, 2);
  EXPECT_EQ(transfer->results, 200);
  std::vector<int64_t> fitting = near->best->record.candidate.decisions;
  for (int64_t& decision : fitting) decision = std::min<int64_t>(decision, 3);
  EXPECT_EQ(transfer->seeds[0].decisions, fitting);
  const std::string own = (*environment.Open("fake op 4", "", "", 0))->spaces()[0].digest;
  for (const record::Candidate& seed : transfer->seeds) EXPECT_EQ(seed.space_digest, own);
  double best = 0;
  for (const Transfer::Space& space : transfer->spaces) {
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
  const auto again = Gather("fake op 12", before->last_record);
  ASSERT_TRUE(before.ok() && again.ok());
  EXPECT_EQ(again->seeds, before->seeds);
  EXPECT_EQ(again->results, before->results);
  EXPECT_GT(Gather("fake op 12")->results, before->results);
  EXPECT_TRUE(Gather("fake op 12", 0)->empty());
}

TEST_F(JobTransferTest, ARestartedJobGoesOnTheSameWhateverWasLearntMeanwhile) {
  RunToEnd(Create(SpecOf("fake op 8", 100, "source")));
  const std::string id = Create(SpecOf("fake op 16", 120, "target"));
  for (int i = 0; i < 6; ++i) Step();
  ASSERT_FALSE(HasEnded(Get(id)->state));
  const std::string meanwhile = Create(SpecOf("fake op 20", 30, "meanwhile"));
  for (int i = 0; i < 6; ++i) Step();
  Restart();
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  // Its events still replay: the search was not begun anew.
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

TEST_F(JobTransferTest, QuarantinedRecordsTeachNothing) {
  auto source = RunToEnd(Create(SpecOf("fake op 8", 60, "source")));
  ASSERT_EQ(Gather("fake op 12")->seeds[0].decisions, source->best->record.candidate.decisions);
  const record::Candidate best = source->best->record.candidate;
  absl::Status done = absl::UnknownError("not called");
  store.Quarantine(source->workload_digest, "t", best, 1'000'000, "a reason",
                   [&](absl::Status status) { done = status; });
  ASSERT_TRUE(done.ok()) << done;
  for (const record::Candidate& seed : Gather("fake op 12")->seeds)
    EXPECT_NE(seed.decisions, best.decisions);
}

}  // namespace
}  // namespace hone::task
