// How the winner of a confirmation and the published best compete.

#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/confirm/confirm_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using JobPublishTest = ConfirmHarness;

TEST_F(JobPublishTest, ImportedBestIsBuiltAndNotReplacedBySlower) {
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

TEST_F(JobPublishTest, TheWinnerIsBuiltAgainBeforeItIsPublished) {
  const auto job = RunToEnd(Create(Spec(20)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  ASSERT_EQ(device.rebuilt.size(), 1u) << "a published best is the only one that needs it";
  EXPECT_EQ(device.rebuilt[0].work->decisions, job->best->record.candidate.decisions);
  EXPECT_TRUE(device.rebuilt[0].build);
  EXPECT_FALSE(device.rebuilt[0].run);
  EXPECT_EQ(device.rebuilt[0].artifact_digest, "") << "the builder must not know what is expected";
  const auto again = RunToEnd(Create(Spec(1, "again")));
  ASSERT_EQ(again->state, JobState::kDone) << again->error;
  EXPECT_EQ(device.rebuilt.size(), 1u) << "its artifact is published already";
}

TEST_F(JobPublishTest, AnArtifactThatAnotherBuilderDoesNotReproduceIsNotPublished) {
  FakeDevice other("1", "other");
  others = {&other};
  std::vector<int64_t> spoiled;
  other.rebuild = [&](const fleet::LeaseGrant& lease) -> std::string {
    if (spoiled.empty()) spoiled = lease.work->decisions;
    return lease.work->decisions == spoiled ? "other code" : "";
  };
  device.rebuild = other.rebuild;
  const auto job = RunToEnd(Create(Spec(40)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  ASSERT_FALSE(spoiled.empty());
  EXPECT_NE(Best(*job).record.candidate.decisions, spoiled);
  EXPECT_THAT(job->note, testing::HasSubstr("is not used: "));
  EXPECT_THAT(job->note, testing::HasSubstr("device built "));
  EXPECT_THAT(job->note, testing::HasSubstr("other built "));
  EXPECT_THAT(job->note, testing::HasSubstr(Sha256Of("other code")));
  EXPECT_EQ(fleet->standings().refused_count(), 0) << "nobody knows which of them is wrong";
  EXPECT_EQ(fleet->Counts().build_mismatches, 1);
  for (const FakeDevice* one : {&device, &other}) {
    for (const fleet::LeaseGrant& lease : one->rebuilt) {
      EXPECT_NE(lease.work->worker_id, "");
    }
  }
}

TEST_F(JobPublishTest, NothingIsPublishedIfNoArtifactIsReproduced) {
  device.rebuild = [](const fleet::LeaseGrant&) { return "other code"; };
  const auto job = RunToEnd(Create(Spec(20)));
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, testing::HasSubstr("one of the two is wrong"));
  EXPECT_FALSE(store.LookupBest({.workload_digest = job->workload_digest, .target = "t"}).ok());
}

TEST_F(JobPublishTest, AnUnpublishedKernelIsBuiltAgainAsWell) {
  JobSpec spec = Spec(10);
  spec.unpublished = true;
  const auto job = RunToEnd(Create(spec));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  ASSERT_EQ(device.rebuilt.size(), 1u);
  EXPECT_EQ(device.rebuilt[0].work->decisions, job->best->record.candidate.decisions);
  device.rebuild = [](const fleet::LeaseGrant&) { return "other code"; };
  spec.request_id = "again";
  const auto refused = RunToEnd(Create(spec));
  EXPECT_EQ(refused->state, JobState::kFailed);
  EXPECT_THAT(refused->error, testing::HasSubstr("one of the two is wrong"));
}

// The store is slow. Each job is cancelled one step later than the one before.
TEST_F(JobPublishTest, AJobThatIsCancelledWhileItPublishesEndsWithThatBest) {
  int published = 0;
  store.Hold();
  for (int steps = 0;; ++steps) {
    JobSpec spec = Spec(10, absl::StrCat("r", steps));
    spec.workload = absl::StrCat("fake op", steps, " 12");
    const std::string id = CreateAndConfirm(std::move(spec), steps);
    ASSERT_NE(id, "");
    if (HasEnded(Get(id)->state)) break;
    ASSERT_LT(steps, 300);
    ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
    executor->RunAll();
    store.Commit();
    executor->RunAll();
    store.Commit();
    const auto job = Get(id);
    EXPECT_EQ(job->state, JobState::kCancelled);
    const auto best = store.LookupBest({.workload_digest = job->workload_digest, .target = "t"});
    if (!best.ok()) continue;
    ++published;
    EXPECT_EQ(job->best->record.id, best->record.id);
  }
  EXPECT_GT(published, 0);
}

// Its latency cannot be compared with those of this job, however low it is.
TEST_F(JobPublishTest, ABestThatWasMeasuredOnOtherInputsIsMeasuredAgain) {
  const std::string data(64, 'a');
  for (const std::string& inputs : {std::string(), data}) {
    JobSpec spec = Spec(100, "request on " + inputs);
    inputs_elsewhere = inputs;
    const int64_t earlier = PublishFromElsewhere(kSlow, 1);
    auto job = RunToEnd(Create(spec));
    ASSERT_EQ(job->state, JobState::kDone) << job->error;
    EXPECT_GT(Best(*job).record.id, earlier);
    EXPECT_NE(Best(*job).record.candidate.decisions, kSlow);
    EXPECT_EQ(Best(*job).record.result.inputs, record::kSeededInputs);
    EXPECT_EQ(job->note.find("measured again"), std::string::npos) << job->note;
  }
  // A winner gets a new record, which says what it was measured on.
  inputs_elsewhere = "";
  const int64_t earlier = PublishFromElsewhere(kHidden, 30);
  const auto job = RunToEnd(Create(Spec(20, "last")));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.candidate.decisions, kHidden);
  EXPECT_GT(Best(*job).record.id, earlier);
  EXPECT_EQ(Best(*job).record.result.latency_ns, 60);
  EXPECT_EQ(Best(*job).record.result.inputs, record::kSeededInputs);
}

TEST_F(JobPublishTest, AJobMeasuresOnTheDataThatItsSpecNames) {
  JobSpec spec = Spec(50);
  spec.inputs_digest = std::string(64, 'a');
  const auto job = RunToEnd(Create(spec));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  for (const fleet::LeaseGrant& lease : device.seen) {
    EXPECT_EQ(lease.work->inputs_digest, spec.inputs_digest);
  }
  EXPECT_EQ(Best(*job).record.result.inputs, spec.inputs_digest);
  // A job on other inputs learns nothing from these latencies: it measures the same candidates.
  const size_t before = device.seen.size();
  const auto seeded = RunToEnd(Create(Spec(50, "seeded")));
  EXPECT_EQ(seeded->trials, job->trials);
  EXPECT_GT(device.seen.size(), before + 50);
  EXPECT_EQ(Best(*seeded).record.result.inputs, record::kSeededInputs);
}

TEST_F(JobPublishTest, AResultOnOtherDataThanTheGivenDoesNotCount) {
  device.ignores_given_inputs = true;
  JobSpec spec = Spec(5);
  spec.inputs_digest = std::string(64, 'a');
  const auto job = RunToEnd(Create(spec));
  EXPECT_EQ(job->state, JobState::kFailed);
  EXPECT_THAT(job->error, testing::HasSubstr("no candidate ran successfully: device_lost"));
  ASSERT_TRUE(job->default_schedule.has_value());
  EXPECT_THAT(job->default_schedule->record.result.detail,
              testing::HasSubstr("did not measure on the given data"));
}

TEST_F(JobPublishTest, StoredCandidatesAreMeasuredOnDataWithoutPublishing) {
  const auto tuned = RunToEnd(Create(Spec(50)));
  const int64_t best = Best(*tuned).record.id;
  device.seen.clear();
  JobSpec spec = Spec(3, "on data");
  spec.revalidate = 3;
  spec.unpublished = true;
  spec.inputs_digest = std::string(64, 'b');
  const auto job = RunToEnd(Create(spec));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*tuned).record.id, best);
  store::RecordQuery query;
  query.job_id = job->id;
  query.page_size = 1000;
  HONE_ASSERT_OK_AND_ASSIGN(const auto records, store.Query(query));
  std::map<std::vector<int64_t>, int> processes;
  int processes_of_default = 0;
  for (const record::Record& record : records) {
    EXPECT_EQ(record.result.inputs, spec.inputs_digest);
    processes_of_default += record.is_default;
    ++processes[record.candidate.decisions];
  }
  EXPECT_GE(processes[tuned->best->record.candidate.decisions], 3);
  EXPECT_GE(processes.size(), 3u);
  EXPECT_GE(processes_of_default, 3) << "for a speed-up";
}

TEST_F(JobPublishTest, UsersAreToldThatAnOverratedBestIsReplaced) {
  PublishFromElsewhere(kSlow, 50);
  const auto job = RunToEnd(Create(Spec(100)));
  EXPECT_EQ(job->best->record.job_id, job->id);
  EXPECT_THAT(job->note, testing::StartsWith("the earlier best, of job elsewhere, was measured"));
  EXPECT_THAT(job->note, testing::EndsWith(" us, and not 0.05 us as before"));
}

TEST_F(JobPublishTest, UsersAreToldIfTheMachineWasSlowerInTheConfirmation) {
  const std::string id = Create(Spec(100));
  RunUntilConfirming(id);
  ASSERT_TRUE(Get(id)->best.has_value()) << "the search has a leader";
  device.measure = [](const fleet::LeaseGrant& lease) {
    return Took(2 * FakeLatency(lease.work->decisions));
  };
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_THAT(job->note,
              testing::HasSubstr("in the confirmation, the best candidate of this job took"));
}

TEST_F(JobPublishTest, ImportedBestThatIsSlowHereDoesNotWin) {
  StoreFromElsewhere(kSlow, 1);
  const auto job = RunToEnd(Create(Spec(100)));
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_LT(job->best->record.result.latency_ns, FakeLatency(kSlow));
  EXPECT_EQ(Best(*job).record.id, job->best->record.id);
}

// The job compares its winner with the best that it finds at publication.
TEST_F(JobPublishTest, FasterConcurrentBestIsKept) {
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

TEST_F(JobPublishTest, SlowerConcurrentBestIsReplaced) {
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

TEST_F(JobPublishTest, BestWithdrawnMeanwhileDoesNotBlockTheWinner) {
  PublishFromElsewhere(kHidden);
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
  const record::Record incumbent = Best(*Get(id)).record;
  device.measure = [](const fleet::LeaseGrant& lease) {
    return Took(lease.work->decisions == kHidden ? 1000 : Latency(lease));
  };
  store.Quarantine(incumbent.workload_digest, "t", incumbent.candidate, incumbent.id, "a reason",
                   [](absl::Status status) { EXPECT_THAT(status, IsOk()); });
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Best(*job).record.id, job->best->record.id);
}

TEST_F(JobPublishTest, PinnedBestIsKeptAndTheJobReportsItsOwn) {
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

TEST_F(JobPublishTest, AResumedJobReportsItsOwnBestBesideAnEarlierOneThatIsPinned) {
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 100 && Get(id)->trials < 8; ++i) Step();
  jobs->Cancel(id, /*confirm=*/true).value();
  const int64_t pinned = RunToEnd(id)->best->record.id;
  Pin(pinned);
  jobs->Resume(id, 0, absl::ZeroDuration(), [](const SnapshotOr& s) { EXPECT_THAT(s, IsOk()); });
  const auto job = RunToEnd(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->best->record.id, pinned);
  ASSERT_TRUE(job->own_best.has_value());
  EXPECT_LT(job->own_best->record.result.latency_ns, job->best->record.result.latency_ns);
}

TEST_F(JobPublishTest, BestThatIsPinnedDuringTheJobIsKept) {
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

TEST_F(JobPublishTest, JobThatIsAlwaysLateKeepsTheOthersBest) {
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

TEST_F(JobPublishTest, AJobWhoseIncumbentWinsEndsWithTheBestThatIsPublishedNow) {
  int64_t published = PublishFromElsewhere(kHidden);
  const std::string id = Create(Spec(100));
  RunUntilConfirming(id);
  for (int i = 0; i < 200 && !HasEnded(Get(id)->state); ++i) {
    published = PublishFromElsewhere(kHidden);
    Step();
  }
  const auto job = Get(id);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->best->record.id, published);
}

TEST_F(JobPublishTest, AJobWithoutArtifactsHasNoConfirmedBest) {
  device.uploads = false;
  for (const bool cancel : {false, true}) {
    const std::string id = Create(Spec(40, absl::StrCat(cancel)));
    RunUntilConfirming(id);
    if (cancel) {
      ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
    }
    const auto job = RunToEnd(id, 2000);
    EXPECT_EQ(job->state, cancel ? JobState::kCancelled : JobState::kFailed);
    EXPECT_THAT(cancel ? job->note : job->error,
                testing::HasSubstr("no worker sent the artifact of a finalist"));
    EXPECT_FALSE(job->own_best.has_value());
    EXPECT_FALSE(job->best && record::IsConfirmed(job->best->record));
  }
}

// The worker of the new winner does not send its artifact.
TEST_F(JobPublishTest, TheBestStaysIfTheArtifactOfItsSuccessorIsMissing) {
  const auto first = RunToEnd(Create(Spec(16, "first")));
  ASSERT_EQ(first->state, JobState::kDone) << first->error;
  device.uploads = false;
  const double best_ns = first->best->record.result.latency_ns;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    const double ns = FakeLatency(lease.work->decisions);
    return Took(ns < best_ns ? 0.98 * best_ns : ns);
  };
  const auto second = RunToEnd(Create(Spec(200, "second")), 2000);
  ASSERT_EQ(second->state, JobState::kDone) << second->error;
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto row, store.LookupBest({.workload_digest = first->workload_digest, .target = "t"}));
  EXPECT_EQ(row.record.id, first->best->record.id);
  EXPECT_EQ(second->best->record.id, row.record.id);
}

TEST_F(JobPublishTest, FasterOfTwoConcurrentWinnersIsPublished) {
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

TEST_F(JobPublishTest, PublishedBestCompetesAndATieKeepsIt) {
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
TEST_F(JobPublishTest, FasterRemeasuredIncumbentIsRepublished) {
  double disturbance = 3;
  device.measure = [&](const fleet::LeaseGrant& lease) {
    return Took(FakeLatency(lease.work->decisions) * disturbance);
  };
  auto first = RunToEnd(Create(Spec(200, "first")));
  ASSERT_EQ(first->state, JobState::kDone) << first->error;
  disturbance = 1;
  auto second = RunToEnd(Create(Spec(30, "second")));
  ASSERT_EQ(second->state, JobState::kDone) << second->error;
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto row, store.LookupBest({.workload_digest = first->workload_digest, .target = "t"}));
  EXPECT_NE(row.record.id, first->best->record.id);
  EXPECT_EQ(row.record.result.latency_ns, FakeLatency(row.record.candidate.decisions));
  EXPECT_EQ(second->best->record.id, row.record.id);
}

}  // namespace
}  // namespace hone::job
