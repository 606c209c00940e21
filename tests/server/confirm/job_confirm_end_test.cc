// Confirmations that other work disturbs, that run out of time, or that are cancelled.

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/record/processes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/confirm/confirm_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using JobConfirmEndTest = ConfirmHarness;

// A device whose confirmations from a certain one on are disturbed: they take 20 times as long, and
// the record is quarantined.
auto DisturbedFrom(int first, int* confirmations) {
  return [first, confirmations](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = FakeLatency(lease.work->decisions);
    if (IsConfirmation(lease) && (*confirmations)++ >= first) {
      result.latency_ns *= 20;
      result.dispersion = 2;
    }
    result.samples_ns = {result.latency_ns, result.latency_ns};
    return result;
  };
}

TEST_F(JobConfirmEndTest, DisturbedConfirmationsAreNotPublished) {
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
  EXPECT_THAT(job->note, HasSubstr("other work disturbed every measurement of the finalists"));
}

TEST_F(JobConfirmEndTest, TheNotesOfTheSearchAndTheConfirmationAreKept) {
  int confirmations = 0;
  device.measure = DisturbedFrom(0, &confirmations);
  JobSpec spec = Spec(1000);
  spec.workload = "fake tiny 2";
  EXPECT_THAT(RunToEnd(Create(std::move(spec)), 2000)->note,
              AllOf(StartsWith("the design spaces are exhausted: "),
                    HasSubstr("; no best could be confirmed: other work disturbed ")));
}

// The leader was measured in three processes before the disturbance began.
TEST_F(JobConfirmEndTest, LeaderIsPublishedIfTheConfirmationIsDisturbed) {
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
TEST_F(JobConfirmEndTest, ProcessOfAChallengerIsPublishedIfTheConfirmationIsDisturbed) {
  int confirmations = 0;
  device.measure = DisturbedFrom(1, &confirmations);
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 500 && confirmations == 0; ++i) Step(1);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const auto job = RunToEnd(id, 2000);
  ASSERT_EQ(job->state, JobState::kCancelled) << job->error;
  ASSERT_TRUE(job->best.has_value());
  EXPECT_EQ(job->best->record.policy.name, "confirm");
  EXPECT_EQ(record::ProcessesOf(job->best->record.result), 1);
  EXPECT_EQ(job->best->record.result.latency_ns,
            FakeLatency(job->best->record.candidate.decisions));
  EXPECT_EQ(Best(*job).record.id, job->best->record.id) << "hone best finds it";
}

// The new server does not know which worker has the leader's artifact, and the time is over.
TEST_F(JobConfirmEndTest, ALateJobBuildsItsLeaderAgainAfterARestart) {
  const std::string id = Create(Spec(100));
  RunUntilConfirming(id);
  ASSERT_TRUE(Get(id)->best.has_value());
  for (int i = 0; i < 500 && Get(id)->left > absl::Milliseconds(300); ++i) Step(0);
  ASSERT_EQ(Get(id)->state, JobState::kConfirming);
  Restart();
  for (int i = 0; i < 250; ++i) Step(0);
  EXPECT_LE(Get(id)->left, absl::ZeroDuration());
  const auto job = RunToEnd(id, 2000);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.id, job->best->record.id);
}

// Another job's best is published. The worker is lost after the first round, so that the job's own
// best does not lead the resumed search, whose screenings look much faster.
TEST_F(JobConfirmEndTest, AResumedJobConfirmsItsOwnBestAgain) {
  PublishFromElsewhere(kSlow, 10);
  int confirmations = 0;
  device.measure = DisturbedFrom(1000000, &confirmations);
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 500 && confirmations == 0; ++i) Step(1);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  RunUntilConfirming(id);
  Step();
  device_is_gone = true;
  const auto first = RunToEnd(id, 2000);
  ASSERT_EQ(first->state, JobState::kCancelled);
  ASSERT_EQ(first->best->record.job_id, "elsewhere");
  ASSERT_TRUE(first->own_best && record::IsConfirmed(first->own_best->record));
  ASSERT_LT(record::ProcessesOf(first->own_best->record.result), record::kProcesses);
  device_is_gone = false;
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    const bool lucky = lease.work->policy.name == "screen";
    result.latency_ns = FakeLatency(lease.work->decisions) * (lucky ? 0.1 : 5);
    result.samples_ns = {result.latency_ns, result.latency_ns};
    return result;
  };
  Step();
  jobs->Resume(id, 0, absl::ZeroDuration(),
               [](const SnapshotOr& job) { EXPECT_THAT(job, IsOk()); });
  RunUntilConfirming(id);
  RunToEnd(id, 2000);
  bool again = false;
  for (const fleet::LeaseGrant& lease : ConfirmLeases()) {
    again = again || lease.work->decisions == first->own_best->record.candidate.decisions;
  }
  EXPECT_TRUE(again);
}

// All challengers are disturbed, so the search has no leader, and so are the processes of the
// fastest finalist, which takes `factor` times as long in them.
class DisturbedFastestTest : public JobConfirmEndTest {
 protected:
  std::shared_ptr<const JobSnapshot> Tune(double factor) {
    bool searching = true;
    device.measure = [&, factor](const fleet::LeaseGrant& lease) {
      const std::vector<int64_t>& decisions = lease.work->decisions;
      record::MeasureResult result;
      result.latency_ns = FakeLatency(decisions);
      if (IsConfirmation(lease)) {
        const bool disturbed = searching || decisions == fastest_;
        result.dispersion = disturbed ? 2 : 0;
        if (disturbed) result.latency_ns *= factor;
      } else if (!decisions.empty() &&
                 (fastest_.empty() || FakeLatency(decisions) < FakeLatency(fastest_))) {
        fastest_ = decisions;
      }
      result.samples_ns = {result.latency_ns, result.latency_ns};
      return result;
    };
    const std::string id = Create(Spec(40));
    RunUntilConfirming(id);
    searching = false;
    return RunToEnd(id, 2000);
  }
  std::vector<int64_t> fastest_;
};

TEST_F(DisturbedFastestTest, NoteSaysThatTheFastestOfTheSearchIsNotConfirmed) {
  const auto job = Tune(3);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.id, job->best->record.id) << "a slower one is published";
  EXPECT_NE(job->best->record.candidate.decisions, fastest_);
  EXPECT_THAT(job->note, HasSubstr("was the fastest of the search, but it could not be confirmed"));
}

TEST_F(DisturbedFastestTest, IsPublishedIfItIsClearlyFasterEvenSo) {
  const auto job = Tune(0.5);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  const record::Record& best = Best(*job).record;
  EXPECT_EQ(best.candidate.decisions, fastest_);
  EXPECT_TRUE(record::IsOnlyDisturbed(best.result));
  EXPECT_FALSE(best.quarantined);
  EXPECT_THAT(job->note, HasSubstr("which was faster than the other finalists even so"));
}

// Only the first challenger becomes the leader; all others time out. The device finishes no
// finalist in time.
TEST_F(JobConfirmEndTest, NoteSaysThatTheFastestWasNotMeasuredInTime) {
  bool searching = true;
  double leader_ns = 0;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    record::MeasureResult result = Timed(lease);
    if (searching && IsConfirmation(lease)) {
      if (leader_ns == 0) leader_ns = result.latency_ns;
      if (result.latency_ns != leader_ns) result.outcome = record::Outcome::kRunTimeout;
    }
    return result;
  };
  int late = 0;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    JobSpec spec = Spec(10, absl::StrCat(seed));
    spec.workload = absl::StrCat("fake op", seed, " 12");
    spec.seed = seed;
    searching = true;
    leader_ns = 0;
    const std::string id = Create(std::move(spec));
    RunUntilConfirming(id);
    searching = false;
    for (int i = 0; i < 500 && !HasEnded(Get(id)->state); ++i) Step(0);
    for (int i = 0; i < 100 && !HasEnded(Get(id)->state); ++i) Step();
    const auto job = Get(id);
    ASSERT_EQ(job->state, JobState::kDone) << job->error;
    late += absl::StrContains(job->note, "could not be confirmed; its measurement did not end");
  }
  EXPECT_GT(late, 0);
}

// Most processes are disturbed. The published median rests only on the others.
TEST_F(JobConfirmEndTest, OnlyUndisturbedProcessesArePublished) {
  int published = 0;
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Rng rng(seed);
    device.measure = [&](const fleet::LeaseGrant& lease) {
      record::MeasureResult result;
      result.latency_ns = FakeLatency(lease.work->decisions);
      if (IsConfirmation(lease) && rng.Below(10) < 7) {
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
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto records,
        store.Query({.workload_digest = job->workload_digest, .target = "t", .page_size = 1000}));
    for (const record::Record& record : records) {
      undisturbed += record.candidate == best.candidate && record.policy.name == "confirm" &&
                     !record.quarantined && record.id != best.id;
    }
    EXPECT_LE(record::ProcessesOf(best.result), undisturbed);
    EXPECT_LE(best.result.latency_ns, job->default_schedule->record.result.latency_ns);
  }
  EXPECT_GE(published, 5);
}

TEST_F(JobConfirmEndTest, BestOfAJobThatIsCancelledEarlyIsNotConfirmed) {
  const std::string id = Create(Spec(200));
  for (int i = 0; i < 300 && Get(id)->trials < 2; ++i) Step(1);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  executor->RunAll();
  const auto job = Get(id);
  ASSERT_EQ(job->state, JobState::kCancelled);
  ASSERT_TRUE(job->best.has_value());
  EXPECT_EQ(job->best->record.policy.name, "screen");
}

// Each process of a finalist takes ten seconds.
TEST_F(JobConfirmEndTest, ConfirmationEndsInTime) {
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

// The device is connected, but it finishes no finalist in the 20 s of the confirmation. No
// challenger was measured undisturbed before.
TEST_F(JobConfirmEndTest, CancelledJobWaitsAFewSecondsForAFirstResult) {
  for (const bool arrives : {false, true}) {
    int confirmations = 0;
    device.measure = DisturbedFrom(0, &confirmations);
    JobSpec spec = Spec(400, absl::StrCat(arrives));
    spec.workload = absl::StrCat("fake op", arrives, " 12");
    const std::string id = Create(std::move(spec));
    for (int i = 0; i < 5; ++i) Step();
    ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
    const absl::Time began = clock.Now();
    for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
    device.measure = nullptr;
    while (clock.Now() < began + absl::Seconds(21)) Step(0);
    ASSERT_EQ(Get(id)->state, JobState::kConfirming);
    for (int i = 0; i < 100 && !HasEnded(Get(id)->state); ++i) Step(arrives ? 1 : 0);
    const auto job = Get(id);
    EXPECT_EQ(job->state, JobState::kCancelled);
    EXPECT_EQ(job->error, "");
    EXPECT_LT(clock.Now() - began, absl::Seconds(22));
    ASSERT_TRUE(job->best.has_value());
    EXPECT_EQ(job->best->record.policy.name, arrives ? "confirm" : "screen");
    if (!arrives) {
      EXPECT_EQ(job->note, "no best could be confirmed: no finalist was measured in time");
    }
  }
}

// The device, which is connected, does not finish what it measures when the job is cancelled.
TEST_F(JobConfirmEndTest, CancelledJobLeavesTimeForItsConfirmation) {
  const std::string id = Create(Spec(400));
  for (int i = 0; i < 5; ++i) Step();
  Step(0);  // it reports what it has begun
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const absl::Time began = clock.Now();
  for (int i = 0; i < 400 && Get(id)->state != JobState::kConfirming; ++i) Step(0);
  ASSERT_EQ(Get(id)->state, JobState::kConfirming);
  EXPECT_GT(clock.Now() - began, absl::Seconds(9)) << "half of 20 s";
  EXPECT_LT(clock.Now() - began, absl::Seconds(11));
  EXPECT_GT(Get(id)->left, absl::Seconds(8));
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kCancelled);
  EXPECT_LT(clock.Now() - began, absl::Seconds(20));
  ASSERT_TRUE(job->best.has_value());
  EXPECT_EQ(job->best->record.policy.name, "confirm");
}

// Each process takes two seconds, and all are disturbed.
TEST_F(JobConfirmEndTest, CancelledJobEndsInTimeOnADisturbedMachine) {
  for (const bool confirming : {false, true}) {
    int confirmations = 0;
    device.measure = DisturbedFrom(0, &confirmations);
    JobSpec spec = Spec(confirming ? 40 : 400, absl::StrCat(confirming));
    if (!confirming) spec.max_time = absl::Hours(1);
    const std::string id = Create(std::move(spec));
    const JobState when = confirming ? JobState::kConfirming : JobState::kRunning;
    for (int i = 0; i < 500 && (Get(id)->state != when || Get(id)->trials < 10); ++i) Step();
    ASSERT_EQ(Get(id)->state, when);
    ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
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
TEST_F(JobConfirmEndTest, CancelledJobDoesNotWaitForAWorkerThatIsGone) {
  int confirmations = 0;
  device.measure = DisturbedFrom(0, &confirmations);
  const std::string id = Create(Spec(40));
  RunUntilConfirming(id);
  device_is_gone = true;
  for (int i = 0; i < 600; ++i) Step();
  ASSERT_EQ(Get(id)->state, JobState::kConfirming) << "the worker may come back";
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const auto job = RunToEnd(id, 20);
  ASSERT_EQ(job->state, JobState::kCancelled);
  EXPECT_THAT(job->note,
              HasSubstr("no best could be confirmed: no worker runs target t: device was"));
  ASSERT_TRUE(job->best.has_value());
  EXPECT_EQ(job->best->record.policy.name, "screen");
}

TEST_F(JobConfirmEndTest, TimeLimitEndsAConfirmationWithoutAResult) {
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
    EXPECT_LT(job->wall, absl::Seconds(22));
    EXPECT_THAT(job->note, HasSubstr(gone ? "no worker" : "no finalist was measured in time"));
    device_is_gone = false;
  }
}

TEST_F(JobConfirmEndTest, CancelWhileConfirmingEndsAtOnce) {
  const std::string id = Create(Spec(40));
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step(2);
  ASSERT_THAT(jobs->Cancel(id, false), IsOk());
  executor->RunAll();
  EXPECT_EQ(Get(id)->state, JobState::kCancelled);
  EXPECT_TRUE(Get(id)->best.has_value());
}

}  // namespace
}  // namespace hone::job
