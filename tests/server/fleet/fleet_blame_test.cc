// Finds the candidate that killed a worker, and tells failures of a worker from failures of a
// candidate.

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fleet/fleet_harness.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

record::MeasureResult Lost(const std::string& detail) {
  record::MeasureResult result;
  result.outcome = record::Outcome::kDeviceLost;
  result.detail = detail;
  return result;
}

class BlameTest : public ::testing::Test, protected Harness {
 protected:
  // The worker reports that everything it holds is running.
  void RunAll(FakeWorker& worker) {
    for (HeldLease& held : worker.report.held) held.phase = LeasePhase::kRunning;
    worker.Call(fleet);
  }
};

TEST_F(BlameTest, SuspectsAreRetriedAloneUntilTheCulpritIsFound) {
  constexpr int kPoison = 2;
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 4; ++i) answers.push_back(Submit(Item("job", i)));
  FakeWorker worker = FakeWorker::Both("w", 4);
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(4));
  RunAll(worker);
  worker.Restart("second");
  // From now on candidates run one at a time; the poisonous one kills the process each time.
  int epoch = 2;
  int innocent = 0;
  for (int step = 0; step < 20 && !answers[kPoison]->called; ++step) {
    worker.Call(fleet);
    ASSERT_THAT(worker.report.held, SizeIs(::testing::Le(1u))) << "suspects run alone";
    if (worker.report.held.empty()) continue;
    const std::string lease = worker.report.held[0].lease_id;
    const bool poison = worker.started.back().work->decisions[0] == kPoison;
    RunAll(worker);
    if (poison) {
      worker.Restart(std::to_string(++epoch));
    } else {
      worker.Finish(lease, Measured(1));
      worker.Call(fleet);
      ++innocent;
    }
  }
  ASSERT_TRUE(answers[kPoison]->called);
  EXPECT_EQ(answers[kPoison]->result->result.outcome, record::Outcome::kDeviceLost);
  EXPECT_THAT(answers[kPoison]->result->result.detail, HasSubstr("w, w"));
  EXPECT_EQ(fleet.Counts().poisoned, 1);
  while (innocent < 3) {
    worker.Call(fleet);
    ASSERT_FALSE(worker.report.held.empty());
    worker.Finish(worker.report.held[0].lease_id, Measured(1));
    ++innocent;
  }
  worker.Call(fleet);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(answers[i]->called) << i;
    if (i == kPoison) continue;
    EXPECT_EQ(answers[i]->result->result.outcome, record::Outcome::kOk) << i;
  }
}

TEST_F(BlameTest, OtherWorkersContinueDuringASuspectRetry) {
  Submit(Item("job", 0));
  FakeWorker first = FakeWorker::Both("first", 1);
  first.Call(fleet);
  RunAll(first);
  FakeWorker second = FakeWorker::Both("second", 4);
  for (int i = 1; i < 3; ++i) Submit(Item("job", i));
  second.Call(fleet);
  EXPECT_THAT(second.started, SizeIs(2));
  first.Restart("again");
  first.Call(fleet);
  ASSERT_THAT(first.started, SizeIs(1)) << "the worker is idle, so it gets the suspect";
  EXPECT_EQ(first.started[0].work->decisions[0], 0);
  Submit(Item("job", 3));
  first.report.free_build_slots = 4;
  first.Call(fleet);
  EXPECT_THAT(first.started, SizeIs(1)) << "nothing runs beside the suspect";
  second.Call(fleet);
  EXPECT_THAT(second.started, SizeIs(3));
}

TEST_F(BlameTest, ADrainedWorkerLeavesTheOtherSuspectsToOthers) {
  for (int i = 0; i < 2; ++i) Submit(Item("job", i));
  FakeWorker first = FakeWorker::Both("first", 2);
  first.Call(fleet);
  RunAll(first);
  first.Restart("again");
  first.Call(fleet);
  ASSERT_THAT(first.report.held, SizeIs(1)) << "one suspect at a time";
  FakeWorker second = FakeWorker::Both("second", 4);
  second.Call(fleet);
  EXPECT_THAT(second.started, IsEmpty()) << "one worker retries suspects";
  ASSERT_THAT(fleet.Drain("first", /*resume=*/false), IsOk());
  first.Finish(first.report.held[0].lease_id, Measured(1));
  first.Call(fleet);
  second.Call(fleet);
  EXPECT_THAT(second.started, SizeIs(1));
}

TEST_F(BlameTest, ABusyWorkerFinishesBeforeItTakesASuspect) {
  Submit(Item("job", 0));
  FakeWorker dying = FakeWorker::Both("dying", 1);
  dying.Call(fleet);
  RunAll(dying);
  FakeWorker busy = FakeWorker::Both("busy", 2);
  Submit(Item("job", 1));
  busy.Call(fleet);
  ASSERT_THAT(busy.started, SizeIs(1));
  Pass(FleetOptions().heartbeat);
  busy.Call(fleet);
  Pass(FleetOptions().heartbeat);
  EXPECT_FALSE(fleet.Workers().at(1).connected) << "the dying worker";
  Submit(Item("job", 2));
  busy.Call(fleet);
  EXPECT_THAT(busy.started, SizeIs(1)) << "gets nothing new while it holds a lease";
  busy.Finish(busy.started[0].lease_id, Measured(1));
  busy.Call(fleet);
  ASSERT_THAT(busy.started, SizeIs(2));
  EXPECT_EQ(busy.started[1].work->decisions[0], 0);
  busy.Finish(busy.started[1].lease_id, Measured(1));
  busy.Call(fleet);
  ASSERT_THAT(busy.started, SizeIs(3));
  EXPECT_EQ(busy.started[2].work->decisions[0], 2);
}

TEST_F(BlameTest, WorkerFailureIsRetriedOnAnotherWorker) {
  auto answer = Submit(Item("job", 1));
  FakeWorker broken = FakeWorker::Both("broken", 1);
  broken.Call(fleet);
  broken.Finish(broken.started.at(0).lease_id, Lost("its disk is full"));
  broken.report.free_build_slots = 0;
  broken.Call(fleet);
  EXPECT_FALSE(answer->called);
  EXPECT_THAT(broken.durable, SizeIs(1)) << "the worker may drop its copy";
  FakeWorker good = FakeWorker::Both("good", 1);
  good.Call(fleet);
  ASSERT_THAT(good.started, SizeIs(1));
  good.Finish(good.started[0].lease_id, Measured(8));
  good.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->result.latency_ns, 8);
}

TEST_F(BlameTest, RepeatedFailuresAreReported) {
  auto answer = Submit(Item("job", 1));
  FakeWorker broken = FakeWorker::Both("broken", 1);
  for (int i = 0; i < FleetOptions().max_device_errors; ++i) {
    broken.Call(fleet);
    EXPECT_FALSE(answer->called);
    ASSERT_THAT(broken.report.held, SizeIs(1));
    broken.Finish(broken.report.held[0].lease_id, Lost("its disk is full"));
  }
  broken.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->result.outcome, record::Outcome::kDeviceLost);
  EXPECT_THAT(answer->result->result.detail, HasSubstr("disk is full"));
}

TEST_F(BlameTest, MissingArtifactCountsAsAnAttempt) {
  auto answer = Submit(Item("job", 1));
  FakeWorker board = FakeWorker::Both("board", 1);
  board.report.capabilities.can_build = false;
  board.Call(fleet, absl::Seconds(5));
  FakeWorker builder = FakeWorker::Both("builder", 1);
  builder.report.capabilities.can_run = false;
  for (int i = 0; i < FleetOptions().max_attempts; ++i) {
    EXPECT_FALSE(answer->called) << i;
    builder.Call(fleet);
    ASSERT_THAT(builder.report.held, SizeIs(1)) << i;
    builder.Finish(builder.report.held[0].lease_id,
                   Measured(0, "00000000000000000000000000000000"));
  }
  builder.Call(fleet);
  ASSERT_TRUE(answer->called) << "the build is not repeated forever";
  EXPECT_THAT(answer->result->result.detail, HasSubstr("did not arrive"));
}

}  // namespace
}  // namespace hone::fleet
