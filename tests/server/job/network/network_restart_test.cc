// Jobs of networks survive a restart of the server: no trial is lost or made twice, and the limit
// of trials holds.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/job/actor/job_codec.h"
#include "tests/server/job/network/network_harness.h"
#include "tests/status.h"

namespace hone::job {
namespace {

class NetworkRestartTest : public ::testing::Test, protected NetworkHarness {};

TEST_F(NetworkRestartTest, EveryMomentOfARestartIsSurvived) {
  for (int at = 0; at < 60; at += 3) {
    const std::string id = Create(NetworkOf(96, absl::StrCat("restart ", at)));
    for (int i = 0; i < at; ++i) Step(5);
    Restart();
    const auto job = RunToEnd(id, 1500);
    ASSERT_EQ(job->state, JobState::kDone) << "restarted at step " << at << ": " << job->error;
    EXPECT_EQ(job->trials, 96) << "restarted at step " << at;
    const std::map<std::string, int64_t> trials = Trials();
    int64_t own = 0;
    for (int i = 0; i < 3; ++i) {
      const auto count = trials.find(TaskJobId(id, i));
      if (count != trials.end()) own += count->second;
      EXPECT_TRUE(job->network->tasks[i].confirmed) << "restarted at step " << at;
    }
    EXPECT_EQ(own, 96) << "restarted at step " << at;
  }
}

TEST_F(NetworkRestartTest, UncommittedWritesMayBeLost) {
  const std::string id = Create(NetworkOf(96));
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 4; ++i) Step(5);
    store.Hold();
    for (int i = 0; i < 3; ++i) Step(5);
    Restart();  // held writes are lost
  }
  const auto job = RunToEnd(id, 1500);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 96);
  EXPECT_EQ(AllTrials(), 96);
}

TEST_F(NetworkRestartTest, ACancelledNetworkConfirmsAfterTheRestart) {
  const std::string id = Create(NetworkOf(10000));
  for (int i = 0; i < 40; ++i) Step();
  ASSERT_THAT(jobs->Cancel(id, /*confirm=*/true), IsOk());
  executor->RunAll();
  Restart();
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kCancelled) << job->error;
  EXPECT_GT(job->trials, 0);
  for (const NetworkTaskState& task : job->network->tasks) EXPECT_TRUE(task.confirmed);
}

TEST_F(NetworkRestartTest, AConfirmationContinues) {
  const std::string id = Create(NetworkOf(96));
  for (int i = 0; i < 300 && Get(id)->state != JobState::kConfirming; ++i) Step();
  ASSERT_EQ(Get(id)->state, JobState::kConfirming);
  Restart();
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(AllTrials(), 96);
  for (const NetworkTaskState& task : job->network->tasks) EXPECT_TRUE(task.confirmed);
}

// The state of the network's job is stored every few seconds.
TEST_F(NetworkRestartTest, ATaskThatEndsJustBeforeTheRestartIsConfirmed) {
  options.save_interval = absl::Hours(1);
  Restart();
  const std::string id = Create(NetworkOf(96));
  const auto any_is_done = [&] {
    for (int i = 0; i < 3; ++i) {
      const absl::StatusOr<store::JobRow> row = store.GetJob(TaskJobId(id, i));
      if (row.ok() && row->state == "done") return true;
    }
    return false;
  };
  for (int i = 0; i < 500 && !any_is_done(); ++i) Step();
  ASSERT_TRUE(any_is_done());
  ASSERT_EQ(Get(id)->state, JobState::kConfirming);
  Restart();
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->note, "");
  for (const NetworkTaskState& task : job->network->tasks) {
    EXPECT_TRUE(task.confirmed);
    EXPECT_EQ(task.state, "done");
  }
}

// The server ends after it has stored the grants and before it has stored the job of a task.
TEST_F(NetworkRestartTest, TrialsThatATaskDidNotGetAreGrantedAgain) {
  const std::string id = Create(NetworkOf(24));
  Step(0);
  ASSERT_THAT(store.GetJob(TaskJobId(id, 1)), IsOk());
  ASSERT_THAT(store.GetJob(TaskJobId(id, 0)), StatusIs(absl::StatusCode::kNotFound))
      << "two tasks prepare at the same time, the heaviest ones first";
  jobs->Suspend();
  JobSnapshot snapshot = *FromRow(*store.GetJob(id));
  snapshot.network->tasks[0].granted = 24;
  store.PutJob(RowOf(snapshot, wall.Now()),
               [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  Restart();
  const auto job = RunToEnd(id);
  EXPECT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_EQ(job->trials, 24);
  EXPECT_EQ(AllTrials(), 24);
}

// One task whose job cannot be read does not hold up the others.
TEST_F(NetworkRestartTest, ATaskThatCannotBeReadIsLeftOut) {
  const std::string id = Create(NetworkOf(96));
  for (int i = 0; i < 20; ++i) Step(5);
  jobs->Suspend();
  store::JobRow row = *store.GetJob(TaskJobId(id, 1));
  row.summary = "nonsense";
  store.PutJob(row, [](const absl::Status& status) { EXPECT_THAT(status, IsOk()); });
  Restart();
  const auto job = RunToEnd(id, 1500);
  ASSERT_EQ(job->state, JobState::kDone) << job->error;
  EXPECT_THAT(job->note, testing::HasSubstr("cannot be read"));
  EXPECT_EQ(job->network->tasks[1].state, "failed");
  for (const int i : {0, 2}) {
    EXPECT_TRUE(job->network->tasks[i].confirmed) << i;
    EXPECT_EQ(job->network->tasks[i].state, "done") << i;
  }
}

TEST_F(NetworkRestartTest, TasksOfAnEndedNetworkEnd) {
  const std::string id = Create(NetworkOf(10000));
  for (int i = 0; i < 40; ++i) Step();
  // The network's end is stored, but its tasks' ends are not.
  store::JobRow row = *store.GetJob(id);
  jobs->Suspend();
  row.state = "cancelled";
  store.PutJob(row, [](absl::Status) {});
  Restart();
  for (int i = 0; i < 5; ++i) Step();
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Get(TaskJobId(id, i))->state, JobState::kCancelled);
  }
}

TEST_F(NetworkRestartTest, TheProgressIsShownAfterwards) {
  const std::string id = Create(NetworkOf(96));
  const auto before = RunToEnd(id);
  Restart();
  const auto after = Get(id);
  EXPECT_EQ(after->spec, before->spec);
  ASSERT_EQ(after->network->tasks.size(), 3u);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(after->network->tasks[i].latency_ns, before->network->tasks[i].latency_ns);
    EXPECT_EQ(after->network->tasks[i].curve, before->network->tasks[i].curve);
    EXPECT_EQ(after->network->tasks[i].state, "done");
  }
  EXPECT_EQ(after->network->estimates, before->network->estimates);
}

}  // namespace
}  // namespace hone::job
