// The confirmation phase of a job.

#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/record/processes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/task/job_harness.h"

namespace hone::task {
namespace {

using ::testing::HasSubstr;

// Candidates that the search does not consider good.
const std::vector<int64_t> kSlow = {9, 9, 9};
const std::vector<int64_t> kHidden = {11, 0, 11};  // the fastest of all in confirmations

double Latency(const fleet::LeaseGrant& lease) {
  const bool hidden = lease.work->decisions == kHidden && lease.work->policy.name == "confirm";
  return hidden ? 60 : FakeLatency(lease.work->decisions);
}

class JobConfirmTest : public ::testing::Test, protected JobHarness {
 protected:
  std::vector<fleet::LeaseGrant> ConfirmLeases() {
    std::vector<fleet::LeaseGrant> leases;
    for (const fleet::LeaseGrant& lease : device.seen) {
      if (lease.work->policy.name == "confirm") leases.push_back(lease);
    }
    return leases;
  }
  // Stores a confirmed candidate of the jobs' design space, without its artifact, as an import
  // does. Returns its record.
  record::Record StoreFromElsewhere(const std::vector<int64_t>& decisions, double latency_ns) {
    const WorkloadInfo workload = *environment.Describe("fake op 12");
    const SpaceInfo space = (*environment.Open("fake op 12", "", "", 0))->spaces()[0];
    const std::string code = absl::StrCat(space.digest, absl::StrJoin(decisions, ","));
    record::Record record{.workload_digest = workload.digest,
                          .op = workload.op,
                          .target = "t",
                          .candidate = {space.digest, decisions},
                          .job_id = "elsewhere"};
    record.policy.name = "confirm";
    record.result.latency_ns = latency_ns;
    record.result.processes = 3;
    record.result.artifact_digest = DigestOf(code).ToHex();
    const auto done = [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; };
    store.PutText(workload.digest, workload.text, done);
    store.PutText(space.digest, space.text, done);
    store.Append(record, [&](absl::StatusOr<record::Record> stored) { record = *stored; });
    return record;
  }
  // Publishes such a candidate on behalf of another job. Returns its record's id.
  int64_t PublishFromElsewhere(const std::vector<int64_t>& decisions) {
    const record::Record record =
        StoreFromElsewhere(decisions, decisions == kHidden ? 60 : FakeLatency(decisions));
    const auto done = [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; };
    store.PutArtifact(record.result.artifact_digest,
                      absl::StrCat(record.candidate.space_digest, absl::StrJoin(decisions, ",")),
                      done);
    store.PublishBest(record.id, done);
    return record.id;
  }
  void Pin(int64_t record) {
    store.PinBest({.workload_digest = environment.Describe("fake op 12")->digest, .target = "t"},
                  record, "somebody",
                  [](absl::Status status) { EXPECT_TRUE(status.ok()) << status; });
  }
  void SetUp() override {
    device.measure = [](const fleet::LeaseGrant& lease) {
      record::MeasureResult result;
      result.latency_ns = Latency(lease);
      result.samples_ns = {result.latency_ns, result.latency_ns};
      return result;
    };
  }
  // Runs a job until its search is over, and forgets the leases so far.
  void RunUntilConfirming(const std::string& id) {
    for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) Step();
    device.seen.clear();
  }
  // Runs a job. While it confirms its finalists, another job publishes a candidate.
  std::shared_ptr<const JobSnapshot> RunBeside(const std::vector<int64_t>& decisions,
                                               int64_t& published) {
    const std::string id = Create(Spec(100));
    for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
    published = PublishFromElsewhere(decisions);
    return RunToEnd(id);
  }
  store::BestRow Best(const JobSnapshot& job) {
    return *store.LookupBest({.workload_digest = job.workload_digest, .target = "t"});
  }
};

TEST_F(JobConfirmTest, ImportedBestIsBuiltAndNotReplacedBySlower) {
  StoreFromElsewhere(kHidden, 60);
  const auto job = RunToEnd(Create(Spec(1)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->best->record.candidate.decisions, kHidden);
  EXPECT_EQ(Best(*job).record.id, job->best->record.id);
  EXPECT_EQ(Best(*job).record.job_id, job->id);
  int built = 0;
  for (const fleet::LeaseGrant& lease : ConfirmLeases()) {
    built += lease.work->decisions == kHidden && lease.build ? 1 : 0;
  }
  EXPECT_EQ(built, 1) << "its artifact was not imported";
}

TEST_F(JobConfirmTest, UsersAreToldThatAnOverratedBestIsReplaced) {
  const record::Record record = StoreFromElsewhere(kSlow, 50);
  const auto done = [](const absl::Status& status) { EXPECT_TRUE(status.ok()) << status; };
  store.PutArtifact(record.result.artifact_digest,
                    absl::StrCat(record.candidate.space_digest, absl::StrJoin(kSlow, ",")), done);
  store.PublishBest(record.id, done);
  const auto job = RunToEnd(Create(Spec(100)));
  EXPECT_EQ(job->best->record.job_id, job->id);
  EXPECT_THAT(job->note, testing::StartsWith("the earlier best, of job elsewhere, was measured"));
  EXPECT_THAT(job->note, testing::EndsWith(" us, and not 0.05 us as before"));
}

TEST_F(JobConfirmTest, ImportedBestThatIsSlowHereDoesNotWin) {
  StoreFromElsewhere(kSlow, 1);
  const auto job = RunToEnd(Create(Spec(100)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_LT(job->best->record.result.latency_ns, FakeLatency(kSlow));
  EXPECT_EQ(Best(*job).record.id, job->best->record.id);
}

// The job compares its winner with the best that it finds at publication.
TEST_F(JobConfirmTest, FasterConcurrentBestIsKept) {
  int64_t published = 0;
  const auto job = RunBeside(kHidden, published);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.id, published);
  EXPECT_EQ(job->best->record.id, published);
  int rounds = 0;
  for (const fleet::LeaseGrant& lease : ConfirmLeases()) {
    if (lease.work->decisions != kHidden) continue;
    EXPECT_TRUE(lease.run && !lease.build) << "the published bytes are measured";
    ++rounds;
  }
  EXPECT_GE(rounds, 3);
}

TEST_F(JobConfirmTest, SlowerConcurrentBestIsReplaced) {
  int64_t published = 0;
  const auto job = RunBeside(kSlow, published);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_NE(Best(*job).record.id, published);
  EXPECT_EQ(Best(*job).record.id, job->best->record.id);
  EXPECT_LT(job->best->record.result.latency_ns, FakeLatency(kSlow));
  std::map<std::vector<int64_t>, int> last;  // runs of each candidate after the conflict
  bool conflict = false;
  for (const fleet::LeaseGrant& lease : ConfirmLeases()) {
    conflict = conflict || lease.work->decisions == kSlow;
    if (conflict) ++last[lease.work->decisions];
  }
  EXPECT_EQ(last.size(), 2u) << "only the winner and the new incumbent";
}

TEST_F(JobConfirmTest, BestWithdrawnMeanwhileDoesNotBlockTheWinner) {
  PublishFromElsewhere(kHidden);
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
  const record::Record incumbent = Best(*Get(id)).record;
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = lease.work->decisions == kHidden ? 1000 : Latency(lease);
    result.samples_ns = {result.latency_ns};
    return result;
  };
  store.Quarantine(incumbent.workload_digest, "t", incumbent.candidate, incumbent.id, "a reason",
                   [](absl::Status status) { EXPECT_TRUE(status.ok()) << status; });
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.id, job->best->record.id);
}

TEST_F(JobConfirmTest, PinnedBestIsKeptAndTheJobReportsItsOwn) {
  const int64_t pinned = PublishFromElsewhere(kSlow);
  Pin(pinned);
  const auto job = RunToEnd(Create(Spec(100)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.id, pinned);
  EXPECT_EQ(job->best->record.id, pinned);
  EXPECT_EQ(job->best->pinned_by, "somebody");
  EXPECT_GT(job->best->pinned_unix_ms, 0);
  ASSERT_TRUE(job->own_best.has_value());
  EXPECT_LT(job->own_best->record.result.latency_ns, FakeLatency(kSlow));
  EXPECT_EQ(job->own_best->pinned_unix_ms, 0);

  // Its own best is stored with its artifact, so that it can be pinned instead.
  Pin(job->own_best->record.id);
  EXPECT_EQ(Best(*job).record.id, job->own_best->record.id);
}

TEST_F(JobConfirmTest, BestThatIsPinnedDuringTheJobIsKept) {
  const int64_t published = PublishFromElsewhere(kSlow);
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
  Pin(published);
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.id, published);
  EXPECT_EQ(job->best->record.id, published);
  EXPECT_GT(job->best->pinned_unix_ms, 0);
}

TEST_F(JobConfirmTest, JobThatIsAlwaysLateKeepsTheOthersBest) {
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
  std::vector<int64_t> slow = kSlow;
  int64_t published = 0;
  for (int i = 0; i < 200 && !HasEnded(Get(id)->state); ++i) {
    slow[2] = kSlow[2] - i % 3;
    published = PublishFromElsewhere(slow);
    Step();
  }
  const auto job = Get(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->best->record.id, published);
}

TEST_F(JobConfirmTest, FasterOfTwoConcurrentWinnersIsPublished) {
  JobSpec other = Spec(16, "other");
  other.seed = 8;
  const std::string first = Create(Spec(120, "first")), second = Create(std::move(other));
  RunToEnd(first);
  RunToEnd(second);
  ASSERT_EQ(Get(first)->state, JobState::kDone) << Get(first)->error;
  ASSERT_EQ(Get(second)->state, JobState::kDone) << Get(second)->error;
  const double best = Best(*Get(first)).record.result.latency_ns;
  for (const std::string& id : {first, second}) {
    EXPECT_LE(best, Get(id)->best->record.result.latency_ns);
  }
}

TEST_F(JobConfirmTest, FinalistsRunTheSameBytesInThreeRounds) {
  const std::string id = Create(Spec(100));
  RunUntilConfirming(id);
  auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  std::map<std::vector<int64_t>, int> rounds;
  for (const fleet::LeaseGrant& lease : ConfirmLeases()) {
    EXPECT_TRUE(lease.run && !lease.build);
    EXPECT_FALSE(lease.artifact_digest.empty());
    EXPECT_EQ(lease.best_latency_ns, 0) << "a confirmation never stops early";
    ++rounds[lease.work->decisions];
  }
  EXPECT_GE(rounds.size(), 2u);
  EXPECT_LE(rounds.size(), 9u) << "eight finalists, and the default for the speed-up";
  EXPECT_GE(rounds.at(job->best->record.candidate.decisions), 3);
  EXPECT_EQ(job->best->record.policy.name, "confirm");
}

TEST_F(JobConfirmTest, UnconfirmedScreeningLatencyIsNotPublished) {
  // One candidate looks best in the screening and is slow in every later process.
  std::vector<int64_t> lucky;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = FakeLatency(lease.work->decisions);
    if (lease.work->policy.name == "screen" && lucky.empty() && !lease.work->decisions.empty()) {
      lucky = lease.work->decisions;
    }
    if (lease.work->decisions == lucky)
      result.latency_ns = lease.work->policy.name == "screen" ? 95 : 180;
    result.samples_ns = {result.latency_ns};
    return result;
  };
  auto job = RunToEnd(Create(Spec(100)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  ASSERT_FALSE(lucky.empty());
  EXPECT_NE(job->best->record.candidate.decisions, lucky);
}

TEST_F(JobConfirmTest, PublishedBestCompetesAndATieKeepsIt) {
  auto first = RunToEnd(Create(Spec(200, "first")));
  ASSERT_EQ(first->state, JobState::kDone);
  const int64_t published = first->best->record.id;
  // The second job finds only new candidates that are as good or worse.
  auto second = RunToEnd(Create(Spec(30, "second")));
  ASSERT_EQ(second->state, JobState::kDone) << second->error;
  auto row = store.LookupBest({.workload_digest = first->workload_digest, .target = "t"});
  EXPECT_LE(row->record.result.latency_ns, first->best->record.result.latency_ns);
  if (row->record.result.latency_ns == first->best->record.result.latency_ns) {
    EXPECT_EQ(row->record.id, published);
    EXPECT_EQ(second->best->record.id, published);
  }
}

// The machine was disturbed during both the screening and the confirmation. A later job finds the
// true latency.
TEST_F(JobConfirmTest, FasterRemeasuredIncumbentIsRepublished) {
  double disturbance = 3;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = FakeLatency(lease.work->decisions) * disturbance;
    result.samples_ns = {result.latency_ns};
    return result;
  };
  auto first = RunToEnd(Create(Spec(200, "first")));
  ASSERT_EQ(first->state, JobState::kDone) << first->error;
  disturbance = 1;
  auto second = RunToEnd(Create(Spec(30, "second")));
  ASSERT_EQ(second->state, JobState::kDone) << second->error;
  const auto row = store.LookupBest({.workload_digest = first->workload_digest, .target = "t"});
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_NE(row->record.id, first->best->record.id);
  EXPECT_EQ(row->record.result.latency_ns, FakeLatency(row->record.candidate.decisions));
  EXPECT_EQ(second->best->record.id, row->record.id);
}

// If the default is close to the best, it is confirmed in the same way: it is the baseline of the
// reported speed-up.
TEST_F(JobConfirmTest, CloseDefaultIsConfirmed) {
  device.measure = [&](const fleet::LeaseGrant& lease) {
    const bool untiled = lease.work->decisions.empty();
    record::MeasureResult result;
    result.latency_ns = untiled ? 120 : FakeLatency(lease.work->decisions);
    if (untiled && lease.work->policy.name == "screen") result.latency_ns = 180;  // disturbed
    result.samples_ns = {result.latency_ns};
    return result;
  };
  auto job = RunToEnd(Create(Spec(100)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  ASSERT_TRUE(job->default_schedule.has_value());
  EXPECT_EQ(job->default_schedule->record.result.latency_ns, 120);
  EXPECT_EQ(job->default_schedule->record.policy.name, "confirm");
}

// The speed-up is relative to the default, so its latency must not come from one process, which may
// have been disturbed.
TEST_F(JobConfirmTest, MuchSlowerDefaultIsMeasuredInThreeProcesses) {
  int runs = 0;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = FakeLatency(lease.work->decisions);
    if (lease.work->decisions.empty()) {
      EXPECT_EQ(lease.best_latency_ns, 0) << "it is not stopped early";
      result.latency_ns = runs++ == 0 ? 3000 : 1000;
    }
    result.samples_ns = {result.latency_ns};
    return result;
  };
  auto job = RunToEnd(Create(Spec(100)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(runs, 3);
  const record::MeasureResult& result = job->default_schedule->record.result;
  EXPECT_EQ(result.latency_ns, 1000);
  EXPECT_EQ(record::ProcessesOf(result), record::kProcesses);
  EXPECT_NE(job->best->record.candidate, job->default_schedule->record.candidate);
}

// A default that runs for seconds would take longer than the confirmation may.
TEST_F(JobConfirmTest, DefaultWithoutTimeForItIsNotConfirmed) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = lease.work->decisions.empty() ? 2e9 : FakeLatency(lease.work->decisions);
    result.samples_ns = {result.latency_ns};
    return result;
  };
  auto job = RunToEnd(Create(Spec(40)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(record::ProcessesOf(job->default_schedule->record.result), 1);
}

// What is shown while a job runs is measured in several processes, gets better only, and agrees
// with the end, although single processes are up to 40 % too fast.
TEST_F(JobConfirmTest, ShownBestNeverGetsWorse) {
  for (const uint64_t noise : {1, 2, 3, 4, 5}) {
    Rng rng(noise);
    device.measure = [&](const fleet::LeaseGrant& lease) {
      const bool screen = lease.work->policy.name == "screen";
      record::MeasureResult result;
      result.latency_ns = FakeLatency(lease.work->decisions) *
                          (screen ? 1 - 0.4 * rng.Uniform() : 1 - 0.02 * rng.Uniform());
      result.samples_ns = {result.latency_ns};
      return result;
    };
    JobSpec spec = Spec(120, absl::StrCat("noise ", noise));
    spec.workload = absl::StrCat("fake op", noise, " 12");
    const std::string id = Create(std::move(spec));
    double shown = 0;
    int64_t shown_since = 0;
    for (int i = 0; i < 2000 && !HasEnded(Get(id)->state); ++i) {
      Step(1);
      const auto job = Get(id);
      if (!job->best) continue;
      EXPECT_EQ(job->best->record.policy.name, "confirm");
      const double now = record::SteadyLatencyNs(job->best->record.result);
      if (shown > 0) {
        EXPECT_LE(now, shown * (job->state == JobState::kDone ? 1.01 : 1));
      } else {
        shown_since = job->trials;
      }
      shown = now;
    }
    ASSERT_EQ(Get(id)->state, JobState::kDone) << Get(id)->error;
    EXPECT_GT(shown_since, 0);
    EXPECT_LT(shown_since, 40) << "it is shown early";
  }
}

// Other programs make half of the measurements slower, in bursts, even after the correction for the
// speed of the machine, and some screened latencies are too low because the correction fails. More
// trials mean more lucky measurements, and must still not give a worse kernel.
TEST_F(JobConfirmTest, MoreTrialsAreNotWorseOnALoadedMachine) {
  std::map<int64_t, double> sums;  // of the true latencies, by the number of trials
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const int64_t trials : {8, 64, 256}) {
      Rng rng(seed, trials);
      int left = 0;
      double burst = 1;
      device.measure = [&](const fleet::LeaseGrant& lease) {
        if (left-- == 0) {
          left = 5 + static_cast<int>(rng.Below(20));
          burst = rng.Below(2) == 0 ? 1 : 1.1 + 0.4 * rng.Uniform();
        }
        const bool lucky = lease.work->policy.name == "screen" && rng.Below(8) == 0;
        record::MeasureResult result;
        result.latency_ns = FakeLatency(lease.work->decisions) * burst *
                            (1 + 0.05 * rng.Uniform()) * (lucky ? 0.6 : 1);
        result.samples_ns = {result.latency_ns};
        return result;
      };
      JobSpec spec = Spec(trials, absl::StrCat(seed, " ", trials));
      spec.workload = absl::StrCat("fake op", seed, "x", trials, " 12");
      spec.seed = seed;
      const auto job = RunToEnd(Create(std::move(spec)), 3000);
      ASSERT_EQ(job->state, JobState::kDone) << job->error;
      sums[trials] += FakeLatency(job->best->record.candidate.decisions);
    }
  }
  EXPECT_LT(sums[64], sums[8]);
  EXPECT_LT(sums[256], sums[64]);
}

// A device whose confirmations from a certain one on are disturbed: they take 20 times as long, and
// the record is quarantined.
auto DisturbedFrom(int first, int* confirmations) {
  return [first, confirmations](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = FakeLatency(lease.work->decisions);
    if (lease.work->policy.name == "confirm" && (*confirmations)++ >= first) {
      result.latency_ns *= 20;
      result.dispersion = 2;
    }
    result.samples_ns = {result.latency_ns, result.latency_ns};
    return result;
  };
}

TEST_F(JobConfirmTest, DisturbedConfirmationsAreNotPublished) {
  int confirmations = 0;
  device.measure = DisturbedFrom(0, &confirmations);
  const auto job = RunToEnd(Create(Spec(40)), 2000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_GT(confirmations, 8) << "it is tried again";
  EXPECT_FALSE(store.LookupBest({.workload_digest = job->workload_digest, .target = "t"}).ok());
  ASSERT_TRUE(job->best.has_value());
  EXPECT_EQ(job->best->record.policy.name, "screen") << "it is not confirmed";
  EXPECT_FALSE(job->best->record.quarantined);
  EXPECT_EQ(job->best->record.result.latency_ns,
            FakeLatency(job->best->record.candidate.decisions));
  EXPECT_THAT(job->note,
              HasSubstr("other work disturbed every finalist that was measured in time"));
}

// The leader was measured in three processes before the disturbance began.
TEST_F(JobConfirmTest, LeaderIsPublishedIfTheConfirmationIsDisturbed) {
  int confirmations = 0;
  device.measure = DisturbedFrom(1000000, &confirmations);
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) Step(1);
  ASSERT_TRUE(Get(id)->best.has_value());
  const double shown = record::SteadyLatencyNs(Get(id)->best->record.result);
  device.measure = DisturbedFrom(0, &confirmations);
  const auto job = RunToEnd(id, 2000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.id, job->best->record.id);
  EXPECT_LE(record::SteadyLatencyNs(job->best->record.result), shown);
  EXPECT_EQ(record::ProcessesOf(job->best->record.result), record::kProcesses);
}

// The search ended after one process of its only challenger, so it has no leader. Then the
// confirmation is disturbed.
TEST_F(JobConfirmTest, ProcessOfAChallengerIsPublishedIfTheConfirmationIsDisturbed) {
  int confirmations = 0;
  device.measure = DisturbedFrom(1, &confirmations);
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 500 && confirmations == 0; ++i) Step(1);
  ASSERT_TRUE(jobs->Cancel(id, /*confirm=*/true).ok());
  const auto job = RunToEnd(id, 2000);
  ASSERT_EQ(job->state, JobState::kCancelled) << job->error;
  ASSERT_TRUE(job->best.has_value());
  EXPECT_EQ(job->best->record.policy.name, "confirm");
  EXPECT_EQ(record::ProcessesOf(job->best->record.result), 1);
  EXPECT_EQ(job->best->record.result.latency_ns,
            FakeLatency(job->best->record.candidate.decisions));
  EXPECT_EQ(Best(*job).record.id, job->best->record.id) << "hone best finds it";
}

// All challengers are disturbed, so the search has no leader, and so are the processes of the
// fastest finalist.
TEST_F(JobConfirmTest, NoteSaysThatTheFastestOfTheSearchIsNotConfirmed) {
  bool searching = true;
  std::vector<int64_t> fastest;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    const std::vector<int64_t>& decisions = lease.work->decisions;
    record::MeasureResult result;
    result.latency_ns = FakeLatency(decisions);
    if (lease.work->policy.name == "confirm") {
      result.dispersion = searching || decisions == fastest ? 2 : 0;
    } else if (!decisions.empty() &&
               (fastest.empty() || FakeLatency(decisions) < FakeLatency(fastest))) {
      fastest = decisions;
    }
    result.samples_ns = {result.latency_ns, result.latency_ns};
    return result;
  };
  const std::string id = Create(Spec(40));
  RunUntilConfirming(id);
  searching = false;
  const auto job = RunToEnd(id, 2000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.id, job->best->record.id) << "a slower one is published";
  EXPECT_NE(job->best->record.candidate.decisions, fastest);
  EXPECT_THAT(job->note, HasSubstr("was the fastest of the search, but it could not be confirmed"));
}

// Most processes are disturbed. The published median rests only on the others.
TEST_F(JobConfirmTest, OnlyUndisturbedProcessesArePublished) {
  int published = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng(seed);
    device.measure = [&](const fleet::LeaseGrant& lease) {
      record::MeasureResult result;
      result.latency_ns = FakeLatency(lease.work->decisions);
      if (lease.work->policy.name == "confirm" && rng.Below(10) < 7) {
        result.latency_ns *= 20;
        result.dispersion = 2;
      }
      result.samples_ns = {result.latency_ns};
      return result;
    };
    JobSpec spec = Spec(40, absl::StrCat(seed));
    spec.workload = absl::StrCat("fake op", seed, " 12");
    const auto job = RunToEnd(Create(std::move(spec)), 3000);
    ASSERT_EQ(job->state, JobState::kDone) << job->error;
    const record::Record& best = job->best->record;
    EXPECT_EQ(best.result.latency_ns, FakeLatency(best.candidate.decisions));
    if (best.policy.name != "confirm") continue;
    ++published;
    int undisturbed = 0;
    const auto records =
        store.Query({.workload_digest = job->workload_digest, .target = "t", .page_size = 1000});
    ASSERT_TRUE(records.ok()) << records.status();
    for (const record::Record& record : *records) {
      undisturbed += record.candidate == best.candidate && record.policy.name == "confirm" &&
                     !record.quarantined && record.id != best.id;
    }
    EXPECT_LE(record::ProcessesOf(best.result), undisturbed);
    EXPECT_LE(best.result.latency_ns, job->default_schedule->record.result.latency_ns);
  }
  EXPECT_GE(published, 5);
}

// The screening made the default look much slower than the others, which are not faster.
TEST_F(JobConfirmTest, BestIsNeverSlowerThanTheDefault) {
  device.measure = [](const fleet::LeaseGrant& lease) {
    const bool screen = lease.work->policy.name == "screen";
    record::MeasureResult result;
    result.latency_ns = FakeLatency(lease.work->decisions);
    if (lease.work->decisions.empty()) result.latency_ns = screen ? 5000 : 50;
    result.samples_ns = {result.latency_ns};
    return result;
  };
  const auto job = RunToEnd(Create(Spec(40)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->default_schedule->record.result.latency_ns, 50);
  EXPECT_EQ(job->best->record.result.latency_ns, 50);
  EXPECT_EQ(Best(*job).record.candidate, job->default_schedule->record.candidate);
}

TEST_F(JobConfirmTest, LeaderSurvivesARestart) {
  const std::string id = Create(Spec(200));
  for (int i = 0; i < 300 && !Get(id)->best; ++i) Step(1);
  for (int i = 0; i < 20; ++i) Step(1);
  ASSERT_EQ(Get(id)->state, JobState::kRunning);
  ASSERT_TRUE(Get(id)->best.has_value());
  const double before = record::SteadyLatencyNs(Get(id)->best->record.result);
  Restart();
  for (int i = 0; i < 10; ++i) Step(0);
  ASSERT_TRUE(Get(id)->best.has_value());
  EXPECT_LE(record::SteadyLatencyNs(Get(id)->best->record.result), before);
}

TEST_F(JobConfirmTest, BestOfAJobThatIsCancelledEarlyIsNotConfirmed) {
  const std::string id = Create(Spec(200));
  for (int i = 0; i < 300 && Get(id)->trials < 2; ++i) Step(1);
  ASSERT_TRUE(jobs->Cancel(id, /*confirm=*/false).ok());
  executor->RunAll();
  const auto job = Get(id);
  ASSERT_EQ(job->state, JobState::kCancelled);
  ASSERT_TRUE(job->best.has_value());
  EXPECT_EQ(job->best->record.policy.name, "screen");
}

// Each process of a finalist takes ten seconds.
TEST_F(JobConfirmTest, ConfirmationEndsInTime) {
  const std::string id = Create(Spec(40));
  for (int i = 0; i < 200 && Get(id)->state != JobState::kConfirming; ++i) Step();
  const absl::Time began = clock.Now();
  for (int i = 0; i < 200 && !HasEnded(Get(id)->state); ++i) {
    clock.Advance(absl::Seconds(2));
    Step(i % 5 == 4 ? 1 : 0);
  }
  const auto job = Get(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_LE(clock.Now() - began, absl::Seconds(32));
  EXPECT_EQ(job->best->record.policy.name, "confirm");
}

TEST_F(JobConfirmTest, PhaseShowsTheProgressOfTheConfirmation) {
  const std::string id = Create(Spec(40));
  for (int i = 0; i < 200 && Get(id)->state != JobState::kConfirming; ++i) Step();
  std::set<std::string> phases;
  for (int i = 0; i < 200 && !HasEnded(Get(id)->state); ++i) {
    Step(1);
    phases.insert(Get(id)->phase);
  }
  EXPECT_THAT(phases, testing::Contains(testing::ContainsRegex("round 1: 2 of [0-9] confirmed")));
}

TEST_F(JobConfirmTest, AllFinalistsRunOnOneDevice) {
  // Both devices have the same target but different speeds, so their times cannot be compared.
  FakeDevice slower("1", "slower");
  slower.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = 1.3 * FakeLatency(lease.work->decisions);
    result.samples_ns = {result.latency_ns, result.latency_ns};
    return result;
  };
  const auto runs = [](const FakeDevice& one) {
    std::map<std::vector<int64_t>, int> of;  // candidates
    for (const fleet::LeaseGrant& lease : one.seen) {
      if (lease.work->policy.name == "confirm") ++of[lease.work->decisions];
    }
    return of;
  };
  for (const bool restarted : {false, true}) {
    const std::string id = Create(Spec(100, restarted ? "second" : "first"));
    others = {&slower};
    for (int i = 0; i < 500 && Get(id)->trials < 60; ++i) Step(2);
    ASSERT_FALSE(slower.seen.empty());
    if (restarted) Restart();
    RunUntilConfirming(id);
    slower.seen.clear();
    auto job = RunToEnd(id);
    ASSERT_EQ(job->state, JobState::kDone) << job->error;
    const auto here = runs(device), there = runs(slower);
    const auto& few = here.size() < there.size() ? here : there;
    const auto& all = here.size() < there.size() ? there : here;
    EXPECT_GE(all.size(), 4u);
    ASSERT_LE(few.size(), 1u) << "only the check of the winner";
    if (!few.empty()) {
      EXPECT_EQ(few.begin()->second, 1);
    }
    others.clear();
  }
}

TEST_F(JobConfirmTest, ALostArtifactIsBuiltAgain) {
  const std::string id = Create(Spec(40));
  for (int i = 0; i < 100 && Get(id)->trials < 40; ++i) Step();
  device = FakeDevice("2");  // a new process with an empty disk: it lacks the artifacts
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    if (!lease.build) {
      result.outcome = record::Outcome::kDeviceLost;
      result.detail = "no such artifact";
    } else {
      result.latency_ns = FakeLatency(lease.work->decisions);
    }
    return result;
  };
  Step();
  Step();
  device.measure = nullptr;
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_TRUE(store.GetArtifact(job->best->record.result.artifact_digest).ok());
}

TEST_F(JobConfirmTest, MissingArtifactFailsTheJob) {
  device.uploads = false;
  auto job = RunToEnd(Create(Spec(30)), 2000);
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, HasSubstr("artifact"));
  EXPECT_FALSE(store.LookupBest({.workload_digest = job->workload_digest, .target = "t"}).ok());
}

TEST_F(JobConfirmTest, CancelDoesNotCutAConfirmationShort) {
  const std::string id = Create(Spec(400));
  for (int i = 0; i < 5; ++i) Step();
  ASSERT_TRUE(jobs->Cancel(id, true).ok());
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
  for (int i = 0; i < 60; ++i) {
    Step(0);  // the device is connected but slow
    clock.Advance(absl::Seconds(1));
  }
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kCancelled);
  EXPECT_EQ(job->error, "");
  EXPECT_EQ(job->best->record.policy.name, "confirm");
}

// Each process takes two seconds, and all are disturbed.
TEST_F(JobConfirmTest, CancelledJobEndsInTimeOnADisturbedMachine) {
  for (const bool confirming : {false, true}) {
    int confirmations = 0;
    device.measure = DisturbedFrom(0, &confirmations);
    JobSpec spec = Spec(confirming ? 40 : 400, absl::StrCat(confirming));
    if (!confirming) spec.max_time = absl::Hours(1);
    const std::string id = Create(std::move(spec));
    const JobState when = confirming ? JobState::kConfirming : JobState::kRunning;
    for (int i = 0; i < 500 && (Get(id)->state != when || Get(id)->trials < 10); ++i) Step();
    ASSERT_EQ(Get(id)->state, when);
    ASSERT_TRUE(jobs->Cancel(id, /*confirm=*/true).ok());
    for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
    const absl::Time began = clock.Now();
    for (int i = 0; i < 200 && !HasEnded(Get(id)->state); ++i) {
      clock.Advance(absl::Seconds(2));
      Step(1);
      if (Get(id)->state == JobState::kConfirming) {
        EXPECT_LE(Get(id)->left, absl::Seconds(20));
      }
    }
    EXPECT_EQ(Get(id)->state, JobState::kCancelled);
    EXPECT_LE(clock.Now() - began, absl::Seconds(26));
  }
}

// The device, which has measured no finalist undisturbed, goes away.
TEST_F(JobConfirmTest, CancelledJobDoesNotWaitForAWorkerThatIsGone) {
  int confirmations = 0;
  device.measure = DisturbedFrom(0, &confirmations);
  const std::string id = Create(Spec(40));
  RunUntilConfirming(id);
  device_is_gone = true;
  for (int i = 0; i < 600; ++i) Step();
  ASSERT_EQ(Get(id)->state, JobState::kConfirming) << "the worker may come back";
  ASSERT_TRUE(jobs->Cancel(id, /*confirm=*/true).ok());
  const auto job = RunToEnd(id, 20);
  ASSERT_EQ(job->state, JobState::kCancelled);
  EXPECT_THAT(job->note,
              HasSubstr("no best could be confirmed: no worker that runs target t answers"));
  ASSERT_TRUE(job->best.has_value());
  EXPECT_EQ(job->best->record.policy.name, "screen");
}

TEST_F(JobConfirmTest, TimeLimitEndsAConfirmationWithoutAResult) {
  for (const bool gone : {false, true}) {
    int confirmations = 0;
    device.measure = DisturbedFrom(0, &confirmations);
    JobSpec spec = Spec(400, absl::StrCat(gone));
    spec.max_time = absl::Seconds(20);
    const std::string id = Create(std::move(spec));
    RunUntilConfirming(id);
    ASSERT_EQ(Get(id)->state, JobState::kConfirming);
    device_is_gone = gone;
    for (int i = 0; i < 300 && !HasEnded(Get(id)->state); ++i) Step(0);
    const auto job = Get(id);
    ASSERT_EQ(job->state, JobState::kDone);
    EXPECT_LT(job->wall, absl::Seconds(26));
    EXPECT_THAT(job->note, HasSubstr(gone ? "no worker" : "no finalist was measured in time"));
    device_is_gone = false;
  }
}

TEST_F(JobConfirmTest, CancelWhileConfirmingEndsAtOnce) {
  const std::string id = Create(Spec(40));
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step(2);
  ASSERT_TRUE(jobs->Cancel(id, false).ok());
  executor->RunAll();
  EXPECT_EQ(Get(id)->state, JobState::kCancelled);
  EXPECT_TRUE(Get(id)->best.has_value());
}

}  // namespace
}  // namespace hone::task
