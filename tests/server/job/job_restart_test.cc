// Jobs survive a restart of the server: nothing acknowledged is lost, and the search continues
// where it was.

#include <optional>
#include <set>

#include "common/record/given_inputs.h"
#include "common/record/processes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/job/job_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

class JobRestartTest : public ::testing::Test, protected JobHarness {
 protected:
  // Runs a job for a moment, cancels it, and returns it with what it has confirmed.
  std::shared_ptr<const JobSnapshot> RunAndCancel(JobSpec spec) {
    const std::string id = Create(std::move(spec));
    for (int i = 0; i < 5; ++i) Step();
    EXPECT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
    const auto job = RunToEnd(id);
    EXPECT_EQ(job->state, JobState::kCancelled);
    EXPECT_TRUE(job->best && record::IsConfirmed(job->best->record));
    EXPECT_TRUE(job->default_schedule && record::IsConfirmed(job->default_schedule->record));
    Step();
    return job;
  }
  // Cancels a job of 120 trials that has measured some of those that it has proposed.
  std::string CreateAndCancel() {
    const std::string id = Create(Spec(120));
    for (int i = 0; i < 6; ++i) Step(5);
    EXPECT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
    EXPECT_EQ(RunToEnd(id)->state, JobState::kCancelled);
    Step();
    return id;
  }
  void Resume(const std::string& id) {
    jobs->Resume(id, 0, absl::ZeroDuration(),
                 [](const SnapshotOr& job) { EXPECT_THAT(job, IsOk()); });
  }
  SnapshotOr ResumeWithLimit(const std::string& id, int64_t trials) {
    SnapshotOr answer = absl::UnknownError("not called");
    jobs->Resume(id, trials, absl::ZeroDuration(),
                 [&](SnapshotOr snapshot) { answer = std::move(snapshot); });
    executor->RunAll();
    return answer;
  }
  std::set<int64_t> Trials(const std::string& job) {
    std::set<int64_t> trials;
    const std::vector<record::Record> all = *store.Query({.page_size = 1000});
    for (const record::Record& record : all) {
      if (record.job_id != job || record.policy.name != "screen") continue;
      EXPECT_TRUE(trials.insert(record.trial).second)
          << "trial " << record.trial << " is recorded twice";
    }
    return trials;
  }
};

TEST_F(JobRestartTest, JobContinuesWithoutRepeatingTrials) {
  const std::string id = Create(Spec(120));
  for (int i = 0; i < 6; ++i) Step(5);
  const int64_t before = Get(id)->trials;
  ASSERT_GT(before, 0);
  Restart();
  executor->RunAll();
  EXPECT_EQ(Get(id)->trials, before);
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 120);
  EXPECT_EQ(Trials(id).size(), 121u);
}

TEST_F(JobRestartTest, ACancelledJobResumesWhereItStopped) {
  const std::string id = CreateAndCancel();
  const int64_t before = Get(id)->trials;
  ASSERT_GT(before, 0);
  const auto resume = [&](int64_t trials) { return ResumeWithLimit(id, trials); };
  EXPECT_THAT(resume(before - 1), StatusIs(absl::StatusCode::kInvalidArgument))
      << "it has made more trials";
  absl::Status too_short;
  jobs->Resume(id, 0, absl::Milliseconds(100),
               [&](const SnapshotOr& s) { too_short = s.status(); });
  EXPECT_THAT(std::string(too_short.message()), testing::HasSubstr(" has already taken 1 s; "));
  ASSERT_THAT(resume(150), IsOk());
  EXPECT_EQ(Get(id)->state, JobState::kRunning);
  EXPECT_EQ(Get(id)->trials, before) << "measured trials count";
  ASSERT_THAT(resume(0), IsOk()) << "a running job is returned unchanged";
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 150);
  EXPECT_EQ(Trials(id).size(), 151u);
  Step();
  EXPECT_THAT(resume(0), StatusIs(absl::StatusCode::kFailedPrecondition)) << "the job is done";
  SnapshotOr unknown = absl::UnknownError("not called");
  jobs->Resume("4711", 0, absl::ZeroDuration(), [&](SnapshotOr s) { unknown = std::move(s); });
  EXPECT_THAT(unknown.status(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(JobRestartTest, AResumedJobMeasuresNoMoreThanItsNewLimit) {
  const std::string id = CreateAndCancel();
  const int64_t limit = Get(id)->trials + 2;
  ASSERT_THAT(ResumeWithLimit(id, limit), IsOk());
  Restart();
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, limit);
}

TEST_F(JobRestartTest, ResumedJobSurvivesRestart) {
  const std::string id = Create(Spec(120));
  for (int i = 0; i < 6; ++i) Step(5);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  ASSERT_EQ(RunToEnd(id)->state, JobState::kCancelled);
  Restart();
  jobs->Resume(id, 0, absl::ZeroDuration(), [](const SnapshotOr& s) { EXPECT_THAT(s, IsOk()); });
  for (int i = 0; i < 3; ++i) Step(5);
  Restart();
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Trials(id).size(), 121u);
}

TEST_F(JobRestartTest, TheLogOfAnInterruptedJobReplaysFromItsBeginning) {
  const std::string id = Create(Spec(120));
  for (int restarts = 0; restarts < 4; ++restarts) {
    for (int i = 0; i < 5; ++i) Step(5);
    Restart();
  }
  RunToEnd(id);
  auto spaces = *environment.Open("fake op 12", "", "", 0);
  auto search = *TaskSearch::Create(&environment, spaces.get(),
                                    {.strategy = "picky", .cost_model = "nearest", .seed = 7}, {});
  EXPECT_THAT(search->Replay(*store.Events(id), spaces->default_schedule()), IsOk());
  EXPECT_EQ(search->trials().size(), 120u);
}

TEST_F(JobRestartTest, AcknowledgedResultsSurviveACrashDuringCommit) {
  const std::string id = Create(Spec(120));
  for (int i = 0; i < 4; ++i) Step(5);
  store.Hold();
  for (int i = 0; i < 3; ++i) Step(5);
  Restart();  // held writes are lost
  EXPECT_GE(store.Query({.page_size = 1000})->size(), device.acknowledged.size());
  const std::set<int64_t> kept = Trials(id);
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Trials(id).size(), 121u);
}

TEST_F(JobRestartTest, RecordWithoutTellEventIsToldAfterRestart) {
  const std::string id = Create(Spec(60));
  for (int i = 0; i < 3; ++i) Step(5);
  // Stores the result that a server committed before it died without logging the Tell.
  const std::set<int64_t> measured = Trials(id);
  std::optional<Proposal> open;
  const std::vector<store::JobEvent> events = *store.Events(id);
  for (const store::JobEvent& event : events) {
    if (event.kind != kProposeKind) continue;
    const ProposeEvent propose = *DecodePropose(event);
    for (const Proposal& proposal : propose.proposals) {
      if (!measured.contains(proposal.trial)) open = proposal;
    }
  }
  ASSERT_TRUE(open.has_value());
  jobs->Suspend();
  record::Record record{.workload_digest = Get(id)->workload_digest,
                        .target = "t",
                        .candidate = open->candidate,
                        .job_id = id,
                        .trial = open->trial};
  record.result.latency_ns = FakeLatency(open->candidate.decisions);
  record.result.inputs = record::kSeededInputs;
  store.Append(record, [](absl::StatusOr<record::Record>) {});
  Restart();
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 60);
  EXPECT_EQ(Trials(id).size(), 61u);
}

// The server is shut down while the job is too busy to hear that it must end.
TEST_F(JobRestartTest, ABusyJobThatMustEndIsNotContinued) {
  Step();
  const std::string id = Create(Spec(100));
  for (int i = 0; i < 5; ++i) Step(1);
  ASSERT_FALSE(HasEnded(Get(id)->state));
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  Restart();
  EXPECT_EQ(Get(id)->state, JobState::kCancelled);
}

// The results wait for the store while the user cancels the job.
TEST_F(JobRestartTest, AJobThatEndsAtOnceCountsItsStoredTrials) {
  const std::string id = Create(Spec(1000));
  for (int i = 0; i < 5; ++i) Step(2);
  const int64_t before = Get(id)->trials;
  device.Step(*fleet, *artifacts, 2);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  store.Commit();
  executor->RunAll();
  store.Commit();
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kCancelled);
  EXPECT_GT(job->trials, before);
  EXPECT_EQ(job->trials + 1, static_cast<int64_t>(Trials(id).size())) << "beside the default";
}

TEST_F(JobRestartTest, CancelledJobConfirmsAfterRestart) {
  const std::string id = Create(Spec(120));
  for (int i = 0; i < 6; ++i) Step(5);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  executor->RunAll();
  const size_t measured = Trials(id).size();
  Restart();
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kCancelled) << job->error;
  EXPECT_TRUE(job->best.has_value());
  EXPECT_LT(Trials(id).size(), 120u);
  EXPECT_GE(Trials(id).size(), measured);
}

TEST_F(JobRestartTest, FinalistsWithoutArtifactsAreRebuilt) {
  const std::string id = Create(Spec(60));
  while (Trials(id).size() < 40) Step(5);
  Restart();
  device = FakeDevice("2");  // with an empty disk
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  std::set<std::vector<int64_t>> built;
  for (const fleet::LeaseGrant& lease : device.seen) {
    if (lease.build) built.insert(lease.work->decisions);
    EXPECT_TRUE(built.contains(lease.work->decisions)) << "the device cannot have this artifact";
  }
  EXPECT_FALSE(built.empty());
}

TEST_F(JobRestartTest, NewerProgramContinuesFromMeasurements) {
  const std::string id = Create(Spec(120));
  for (int i = 0; i < 6; ++i) Step(5);
  environment.ChangeStrategies();
  Restart();
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Trials(id).size(), 121u);
  Restart();
  EXPECT_EQ(Get(id)->state, JobState::kDone);
}

TEST_F(JobRestartTest, ALostWorkerLosesNoTrials) {
  const std::string id = Create(Spec(80));
  for (int i = 0; i < 4; ++i) Step(5);
  device = FakeDevice("2");  // restarted after a kill: a new epoch without leases
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(Trials(id).size(), 81u);
}

// The machine is slower when the job is resumed, and the job is then cancelled at once.
TEST_F(JobRestartTest, AResumedJobKeepsItsConfirmedBestAndDefault) {
  const auto first = RunAndCancel(Spec(400));
  const std::string& id = first->id;
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = 3 * FakeLatency(lease.work->decisions);
    result.samples_ns = {result.latency_ns, result.latency_ns};
    return result;
  };
  Resume(id);
  for (int i = 0; i < 8; ++i) {
    Step();
    EXPECT_EQ(Get(id)->best->record.id, first->best->record.id);
    EXPECT_TRUE(record::IsConfirmed(Get(id)->default_schedule->record));
  }
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  const auto last = RunToEnd(id);
  EXPECT_EQ(last->state, JobState::kCancelled);
  EXPECT_EQ(last->best->record.id, first->best->record.id);
  EXPECT_EQ(last->default_schedule->record.result.latency_ns,
            first->default_schedule->record.result.latency_ns);
}

// A job that was cancelled at once has confirmed nothing.
TEST_F(JobRestartTest, AResumedJobShowsItsLastBestUntilOneLeads) {
  // Other work disturbs every process in which a challenger is measured again.
  device.measure = [](const fleet::LeaseGrant& lease) {
    record::MeasureResult result;
    result.latency_ns = FakeLatency(lease.work->decisions);
    result.samples_ns = {result.latency_ns, result.latency_ns};
    if (lease.work->policy.name != "screen") result.machine.steal = 0.9;
    return result;
  };
  const std::string id = Create(Spec(400));
  for (int i = 0; i < 6; ++i) Step(5);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  const auto first = RunToEnd(id);
  ASSERT_TRUE(first->best && !record::IsConfirmed(first->best->record));
  Step();
  Resume(id);
  for (int i = 0; i < 6; ++i) {
    Step(5);
    const auto now = Get(id);
    EXPECT_EQ(now->state, JobState::kRunning);
    ASSERT_TRUE(now->best) << i;
    EXPECT_EQ(now->best->record.candidate, first->best->record.candidate);
  }
  EXPECT_EQ(Get(id)->phase.kind, PhaseKind::kMeasuringFirstAgain);
  device.measure = nullptr;
  for (int i = 0; i < 20; ++i) Step(5);
  EXPECT_EQ(Get(id)->best->record.id, 0) << "one leads";
}

TEST_F(JobRestartTest, AResumedJobDoesNotShowAForgottenBest) {
  const std::string id = Create(Spec(400));
  for (int i = 0; i < 3; ++i) Step(3);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  const auto first = RunToEnd(id);
  ASSERT_TRUE(first->best && !record::IsConfirmed(first->best->record));
  store.Forget({.workload_digest = first->workload_digest, .target = "t"}, "forgotten",
               [](const absl::StatusOr<store::Forgotten>& done) { EXPECT_THAT(done, IsOk()); });
  Resume(id);
  for (int i = 0; i < 3; ++i) Step(0);
  EXPECT_EQ(Get(id)->state, JobState::kRunning);
  EXPECT_FALSE(Get(id)->best.has_value());
}

TEST_F(JobRestartTest, AResumedJobForgetsWhatWasForgotten) {
  const auto first = RunAndCancel(Spec(400));
  store.Forget({.workload_digest = first->workload_digest, .target = "t"}, "forgotten",
               [](const absl::StatusOr<store::Forgotten>& done) { EXPECT_THAT(done, IsOk()); });
  Resume(first->id);
  for (int i = 0; i < 3; ++i) Step(0);
  const auto now = Get(first->id);
  EXPECT_EQ(now->state, JobState::kRunning);
  EXPECT_FALSE(now->best && record::IsConfirmed(now->best->record));
  EXPECT_FALSE(now->default_schedule && record::IsConfirmed(now->default_schedule->record));
}

// Another job has published a faster best, which says nothing about the search of this job.
TEST_F(JobRestartTest, AResumedJobShowsTheBestOfItsOwn) {
  const auto other = RunToEnd(Create(Spec(300, "other")));
  const auto first = RunAndCancel(Spec(400, "own"));
  ASSERT_EQ(first->best->record.id, other->best->record.id);
  ASSERT_TRUE(first->own_best && record::IsConfirmed(first->own_best->record));
  Resume(first->id);
  for (int i = 0; i < 3; ++i) Step(0);
  const auto now = Get(first->id);
  EXPECT_EQ(now->state, JobState::kRunning);
  EXPECT_EQ(now->best->record.id, first->own_best->record.id);
  EXPECT_EQ(now->own_best->record.id, first->own_best->record.id);
}

TEST_F(JobRestartTest, AResumedJobKnowsThePeakBeforeItMeasuresAgain) {
  const std::string id = Create(Spec(120));
  for (int i = 0; i < 6; ++i) Step(5);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  ASSERT_TRUE(RunToEnd(id)->default_schedule.has_value());
  device_is_gone = true;
  Restart();
  jobs->Resume(id, 0, absl::ZeroDuration(),
               [](const SnapshotOr& job) { EXPECT_THAT(job, IsOk()); });
  for (int i = 0; i < 3; ++i) Step();
  ASSERT_EQ(Get(id)->state, JobState::kRunning);
  EXPECT_EQ(Get(id)->default_schedule->peak_gflops, 50);
}

TEST_F(JobRestartTest, AJobThatWasConfirmingConfirmsAgain) {
  const std::string id = Create(Spec(40));
  for (int i = 0; i < 100 && Get(id)->state != JobState::kConfirming; ++i) Step();
  ASSERT_EQ(Get(id)->state, JobState::kConfirming);
  Restart();
  auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->best->record.policy.name, "confirm");
}

TEST_F(JobRestartTest, TimeWithoutAServerDoesNotCount) {
  JobSpec spec = Spec(0);
  spec.max_time = absl::Seconds(8);
  const std::string id = Create(spec);
  for (int i = 0; i < 30; ++i) Step(2);
  clock.Advance(absl::Hours(5));
  Restart();
  for (int i = 0; i < 10; ++i) Step(2);
  EXPECT_EQ(Get(id)->state, JobState::kRunning);
  EXPECT_LT(Get(id)->wall, absl::Seconds(8));
}

}  // namespace
}  // namespace hone::job
