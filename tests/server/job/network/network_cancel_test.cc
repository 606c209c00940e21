// Jobs of networks that are cancelled and resumed.

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "server/job/job_manager.h"
#include "tests/server/job/network/network_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;

class NetworkCancelTest : public ::testing::Test, protected NetworkHarness {};

// The device is connected, but it finishes nothing any more.
TEST_F(NetworkCancelTest, ACancelledJobConfirmsForABoundedTime) {
  for (const bool confirming : {false, true}) {
    const std::string id = Create(NetworkOf(confirming ? 60 : 10000, absl::StrCat(confirming)));
    if (confirming) {
      for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) Step();
      for (int i = 0; i < 50; ++i) Step(0);
      EXPECT_GT(Get(id)->left, absl::Seconds(50));
    } else {
      StepUntilTrials(id, 100);
    }
    ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
    const absl::Time began = clock.Now();
    for (int i = 0; i < 400 && !HasEnded(Get(id)->state); ++i) Step(0);
    EXPECT_GT(clock.Now() - began, absl::Seconds(29));
    EXPECT_LT(clock.Now() - began, absl::Seconds(31));
    auto job = Get(id);
    EXPECT_EQ(job->state, JobState::kCancelled) << job->error;
    EXPECT_EQ(job->note,
              "a cancelled job confirms its tasks for at most 30 s, so that 3 tasks are not "
              "confirmed");
    for (const NetworkTaskState& task : job->network->tasks) EXPECT_EQ(task.state, "cancelled");
    if (!confirming) continue;
    for (int i = 0; i < 3; ++i) Step();
    ASSERT_THAT(Resume(id, 0), IsOk());
    job = RunToEnd(id);
    EXPECT_EQ(job->state, JobState::kDone) << job->error;
    EXPECT_EQ(job->trials, 60);
    for (const NetworkTaskState& task : job->network->tasks) EXPECT_TRUE(task.confirmed);
  }
}

// The device is so slow that no task finishes a round in its part of the time.
TEST_F(NetworkCancelTest, ACancelledJobPublishesWhatEachTaskHasMeasured) {
  const std::string id = Create(NetworkOf(60));
  for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) Step();
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const absl::Time began = clock.Now();
  for (int i = 1; i < 400 && !HasEnded(Get(id)->state); ++i) Step(i % 30 == 0 ? 1 : 0);
  EXPECT_LT(clock.Now() - began, absl::Seconds(30));
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kCancelled) << job->error;
  EXPECT_EQ(job->note, "");
  for (const NetworkTaskState& task : job->network->tasks) EXPECT_TRUE(task.confirmed);
}

// The device has finished nothing when the job is cancelled.
TEST_F(NetworkCancelTest, ATaskWithoutAResultIsCancelledWithTheJob) {
  const std::string id = Create(NetworkOf(60));
  for (int i = 0; i < 5; ++i) Step(0);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  for (int i = 0; i < 400 && !HasEnded(Get(id)->state); ++i) Step(0);
  const auto job = Get(id);
  EXPECT_EQ(job->state, JobState::kCancelled) << job->error;
  for (const NetworkTaskState& task : job->network->tasks) {
    EXPECT_THAT(task.state, AnyOf("", "cancelled"));
    EXPECT_EQ(task.error, "");
  }
}

TEST_F(NetworkCancelTest, CancelConfirmsWhatWasMeasured) {
  const std::string id = Create(NetworkOf(10000));
  StepUntilTrials(id, 100);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kCancelled);
  EXPECT_LT(job->trials, 1000);
  for (const NetworkTaskState& task : job->network->tasks) {
    EXPECT_EQ(task.state, "done");
    EXPECT_TRUE(task.confirmed);
  }
}

TEST_F(NetworkCancelTest, DoesNotWaitForAWorkerThatIsGone) {
  for (const bool cancelled : {false, true}) {
    JobSpec spec = NetworkOf(100000, absl::StrCat(cancelled));
    if (!cancelled) spec.max_time = absl::Seconds(20);
    const std::string id = Create(std::move(spec));
    for (int i = 0; i < 50; ++i) Step(1);
    device_is_gone = true;
    if (cancelled) {
      ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
    }
    const auto job = RunToEnd(id, 250);
    if (cancelled) {
      EXPECT_EQ(job->state, JobState::kCancelled);
      EXPECT_THAT(job->note, testing::HasSubstr("device was last seen"));
    } else {
      EXPECT_EQ(job->state, JobState::kDone) << "the first pass was over";
    }
    for (const NetworkTaskState& task : job->network->tasks) {
      EXPECT_THAT(task.state, AnyOf("", "cancelled", "done")) << "no task goes on";
    }
    device_is_gone = false;
    Step();
  }
}

// The network waits as long as any job, not once more for each of its tasks.
TEST_F(NetworkCancelTest, FailsIfItWaitsTooLongForAWorkerAndCanBeResumed) {
  const std::string id = Create(NetworkOf(240));
  for (int i = 0; i < 50; ++i) Step(1);
  device_is_gone = true;
  const absl::Time before = clock.Now();
  const auto failed = RunToEnd(id, 10'000);
  EXPECT_EQ(failed->state, JobState::kFailed);
  EXPECT_LE(clock.Now() - before, options.wait_limit + absl::Seconds(10));
  EXPECT_THAT(failed->error, HasSubstr("it waited 600 s for a worker: no worker runs target t"));
  EXPECT_THAT(failed->error, HasSubstr("; \"hone jobs resume " + id + "\" continues it"));
  device_is_gone = false;
  for (int i = 0; i < 5; ++i) Step();
  ASSERT_THAT(Resume(id, 0), IsOk());
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 240);
}

TEST_F(NetworkCancelTest, CancelAtOnceEndsTheTasks) {
  const std::string id = Create(NetworkOf(10000));
  StepUntilTrials(id, 100);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  executor->RunAll();
  EXPECT_EQ(Get(id)->state, JobState::kCancelled);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Get(TaskJobId(id, i))->state, JobState::kCancelled);
    EXPECT_EQ(Get(id)->network->tasks[i].state, "cancelled");
  }
  for (int i = 0; i < 3; ++i) Step();
  const int64_t trials = AllTrials();
  for (int i = 0; i < 20; ++i) Step();
  EXPECT_EQ(AllTrials(), trials);
}

// Each job is cancelled one step later than the one before, while its tasks publish their bests.
TEST_F(NetworkCancelTest, CancelledAtOnceWhileATaskPublishesItShowsThatBest) {
  int published = 0;
  store.Hold();
  for (int steps = 0;; ++steps) {
    JobSpec spec = NetworkOf(30, absl::StrCat("r", steps));
    for (size_t i = 0; i < 3; ++i) {
      spec.network->tasks[i].workload = absl::StrCat("fake op", steps, "x", i, " 12");
    }
    const std::string id = CreateAndConfirm(std::move(spec), steps);
    ASSERT_NE(id, "");
    if (HasEnded(Get(id)->state)) break;
    ASSERT_LT(steps, 300);
    ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
    for (int i = 0; i < 10; ++i) {
      store.Commit();
      Step();
    }
    const auto job = Get(id);
    EXPECT_EQ(job->state, JobState::kCancelled);
    EXPECT_EQ(job->note, "");
    for (size_t i = 0; i < 3; ++i) {
      const NetworkTaskState& task = job->network->tasks[i];
      EXPECT_TRUE(HasEnded(Get(TaskJobId(id, i))->state));
      const auto best = store.LookupBest({.workload_digest = task.workload_digest, .target = "t"});
      EXPECT_EQ(best.ok(), task.confirmed);
      if (!best.ok()) continue;
      ++published;
      EXPECT_EQ(task.latency_ns, record::SteadyLatencyNs(best->record.result));
    }
  }
  EXPECT_GT(published, 0);
}

// The server has not begun the job when it is cancelled.
TEST_F(NetworkCancelTest, CancelledAtOnceBeforeItBeginsItHasNoTasks) {
  store.Hold();
  std::string id;
  jobs->Create(NetworkOf(30), [&](const SnapshotOr& job) { id = job.ok() ? (*job)->id : ""; });
  const std::vector<std::string> unfinished = jobs->Unfinished();
  ASSERT_EQ(unfinished.size(), 1u);
  ASSERT_THAT(jobs->Cancel(unfinished[0], /*confirm=*/false), IsOk());
  executor->RunAll();
  store.Commit();
  executor->RunAll();
  EXPECT_EQ(id, unfinished[0]);
  EXPECT_EQ(Get(id)->state, JobState::kCancelled);
  EXPECT_FALSE(Get(id)->network.has_value());
}

// A faster result that was not confirmed does not replace what a lookup returns.
TEST_F(NetworkCancelTest, CancelledAtOnceItShowsTheConfirmedBests) {
  JobSpec one = Spec(4, "first");
  one.workload = "fake beta 12";
  const double known_ns = RunToEnd(Create(one))->best->record.result.latency_ns;
  const std::string id = Create(NetworkOf(10000));
  for (int i = 0; i < 500 && !(Get(id)->network && Get(id)->network->tasks[1].trials > 0 &&
                               Get(id)->network->tasks[1].latency_ns < known_ns);
       ++i) {
    Step();
  }
  ASSERT_LT(Get(id)->network->tasks[1].latency_ns, known_ns);
  ASSERT_FALSE(Get(id)->network->tasks[1].confirmed);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  executor->RunAll();
  EXPECT_EQ(Get(id)->network->tasks[1].latency_ns, known_ns);
  EXPECT_TRUE(Get(id)->network->tasks[1].confirmed);
  EXPECT_FALSE(Get(id)->network->tasks[0].confirmed);
}

TEST_F(NetworkCancelTest, ResumedWithMoreTrialsItContinuesItsTasks) {
  const std::string id = Create(NetworkOf(120));
  StepUntilTrials(id, 60);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const auto cancelled = RunToEnd(id);
  ASSERT_EQ(cancelled->state, JobState::kCancelled);
  Step();
  EXPECT_THAT(Resume(id + ".1", 0), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Resume(id, cancelled->trials - 1).status().message(),
              HasSubstr("the new limit must not be lower"));
  ASSERT_THAT(Resume(id, 240), IsOk());
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 240);
  EXPECT_EQ(AllTrials(), 240);
}

TEST_F(NetworkCancelTest, ResumedWithFewerTrialsItEndsEarlier) {
  const std::string id = Create(NetworkOf(240));
  StepUntilTrials(id, 60);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  const int64_t made = RunToEnd(id)->trials;
  ASSERT_LT(made, 150);
  Step();
  ASSERT_THAT(Resume(id, 150), IsOk());
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 150);
}

// A task may publish its best while the job of the networks ends.
TEST_F(NetworkCancelTest, ResumedItKnowsHowItsTasksHaveEnded) {
  const std::string id = Create(NetworkOf(60));
  for (int i = 0; i < 500 && Get(id)->state != JobState::kConfirming; ++i) Step();
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  ASSERT_EQ(RunToEnd(id)->state, JobState::kCancelled);
  Step();
  JobSnapshot snapshot = *FromRow(*store.GetJob(id));
  NetworkTaskState& task = snapshot.network->tasks[1];
  ASSERT_EQ(task.state, "done");
  const double latency_ns = task.latency_ns;
  task.state = "cancelled";
  task.confirmed = false;
  task.latency_ns = 1;
  store.PutJob(RowOf(snapshot, wall.Now()),
               [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  ASSERT_THAT(Resume(id, 0), IsOk());
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->note, "");
  EXPECT_EQ(job->network->tasks[1].latency_ns, latency_ns);
  EXPECT_TRUE(job->network->tasks[1].confirmed);
}

TEST_F(NetworkCancelTest, IsNotResumedWhileItIsBeingCancelled) {
  JobSpec spec = NetworkOf(0);
  spec.max_time = absl::Seconds(60);
  const std::string id = Create(spec);
  StepUntilTrials(id, 60);
  ASSERT_THAT(Resume(id, 0), IsOk()) << "it is running";
  EXPECT_THAT(Resume(id, 1000), StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  Step();
  EXPECT_THAT(Resume(id, 0).status().message(), HasSubstr("is being cancelled"));
  ASSERT_EQ(RunToEnd(id)->state, JobState::kCancelled);
  Step();
  EXPECT_THAT(Resume(id, 3), StatusIs(absl::StatusCode::kInvalidArgument))
      << "it has made more trials";
  EXPECT_THAT(Resume(id, 1000), IsOk());
}

TEST_F(NetworkCancelTest, ResumedAfterACancelAtOnceItContinuesItsTasks) {
  const std::string id = Create(NetworkOf(240));
  StepUntilTrials(id, 60);
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
  for (int i = 0; i < 3; ++i) Step();
  ASSERT_EQ(Get(id)->state, JobState::kCancelled);
  ASSERT_THAT(Resume(id, 0), IsOk());
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 240);
  EXPECT_EQ(AllTrials(), 240);
  for (const NetworkTaskState& task : job->network->tasks) EXPECT_TRUE(task.confirmed);
}

TEST_F(NetworkCancelTest, IsResumedOnlyWhenItsTasksHaveEnded) {
  std::string id;
  bool armed = false;
  SnapshotOr early = absl::UnknownError("not called");
  environment.WatchSteps([&](absl::string_view step, absl::string_view name) {
    if (step != "propose" || name != "alpha" || !std::exchange(armed, false)) return;
    // The job and its other tasks end while the search of this task is busy.
    EXPECT_THAT(jobs->Cancel(id, /*confirm=*/false), IsOk());
    executor->RunAll();
    early = Resume(id, 0);
  });
  id = Create(NetworkOf(240));
  StepUntilTrials(id, 60);
  armed = true;
  for (int i = 0; i < 100 && armed; ++i) Step();
  EXPECT_THAT(early.status(), StatusIs(absl::StatusCode::kUnavailable));
  environment.WatchSteps(nullptr);
  for (int i = 0; i < 3; ++i) Step();
  ASSERT_EQ(Get(id)->state, JobState::kCancelled);
  EXPECT_EQ(Get(TaskJobId(id, 0))->state, JobState::kCancelled);
  ASSERT_THAT(Resume(id, 0), IsOk());
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 240);
}

}  // namespace
}  // namespace hone::job
