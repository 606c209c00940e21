#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/fleet/fleet_parts.h"
#include "tests/server/fleet/fleet_parts.h"

namespace hone::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Duration kWait = absl::Seconds(8);

class WorkerCallsTest : public FleetPartsTest {
 protected:
  WorkerCallsTest() : FleetPartsTest({.instance = "test"}) {}
  Worker& AddWorker(const std::string& id) {
    Worker& worker = registry_.Add(id);
    registry_.Update(worker, report_, clock_.Now());
    worker.news.standing_told = true;
    worker.free_build_slots = worker.free_run_slots = 1;
    return worker;
  }
  uint64_t Call(Worker& worker, absl::Duration max_wait = kWait) {
    reply_.reset();
    const uint64_t token = calls_.Take(
        worker, max_wait, [this](SynchronizeReply reply) { reply_ = std::move(reply); });
    RunDeferred();
    return token;
  }
  void RunDeferred() {
    for (auto& call : deferred_.Take()) std::move(call)();
  }
  void AddWork() {
    book_.queue().Add({.job_id = "job", .target_key = "t"}, nullptr);
    calls_.Offer();
    RunDeferred();
  }

  WorkerReport report_{.epoch = "1",
                       .capabilities = {.target_key = "t", .can_build = true, .can_run = true}};
  std::optional<SynchronizeReply> reply_;  // to the last call
};

TEST_F(WorkerCallsTest, ACallIsHeldUntilThereIsWork) {
  Worker& worker = AddWorker("w");
  Call(worker);
  EXPECT_TRUE(calls_.IsHeld(worker));
  EXPECT_FALSE(reply_.has_value());
  EXPECT_THAT(calls_.Idle(), ElementsAre("w"));
  AddWork();
  ASSERT_TRUE(reply_.has_value());
  EXPECT_THAT(reply_->start, SizeIs(1));
  EXPECT_FALSE(calls_.IsHeld(worker));
  EXPECT_THAT(calls_.Idle(), IsEmpty());
}

TEST_F(WorkerCallsTest, CallIsHeldForItsMaxWaitOnly) {
  Worker& worker = AddWorker("w");
  Call(worker);
  calls_.Tick(clock_.Now() + kWait / 2);
  EXPECT_TRUE(calls_.IsHeld(worker));
  calls_.Tick(clock_.Now() + kWait);
  RunDeferred();
  EXPECT_TRUE(reply_.has_value());
  Call(worker, absl::ZeroDuration());
  EXPECT_TRUE(reply_.has_value());
}

TEST_F(WorkerCallsTest, FullWorkerIsNotIdle) {
  Worker& worker = AddWorker("w");
  worker.free_build_slots = worker.free_run_slots = 0;
  Call(worker);
  EXPECT_THAT(calls_.Idle(), IsEmpty());
  AddWork();
  EXPECT_FALSE(reply_.has_value());
}

TEST_F(WorkerCallsTest, ADrainedWorkerIsToldAndGetsNoLeases) {
  Worker& worker = AddWorker("w");
  Call(worker);
  standings_.Change({.worker_id = "w", .drained = true});
  worker.news.standing_told = false;
  calls_.Wake(worker);
  RunDeferred();
  ASSERT_TRUE(reply_.has_value());
  EXPECT_TRUE(reply_->drain && reply_->standing_new);
  Call(worker);
  AddWork();
  EXPECT_FALSE(reply_.has_value());
}

TEST_F(WorkerCallsTest, AnAbandonedCallIsNotAnswered) {
  Worker& worker = AddWorker("w");
  const uint64_t token = Call(worker);
  EXPECT_NE(calls_.Abandon(token), nullptr);
  EXPECT_FALSE(calls_.IsHeld(worker));
  EXPECT_EQ(calls_.Abandon(token), nullptr);
  AddWork();
  EXPECT_FALSE(reply_.has_value());
}

TEST_F(WorkerCallsTest, RefusedWorkerDropsAllLeasesAndResults) {
  calls_.Refuse({.held = {{.lease_id = "a"}}, .finished = {{.lease_id = "b"}}}, {.why = "why"},
                [this](SynchronizeReply reply) { reply_ = std::move(reply); });
  RunDeferred();
  EXPECT_THAT(reply_->cancel, ElementsAre("a"));
  EXPECT_THAT(reply_->durable, ElementsAre("b"));
  EXPECT_EQ(reply_->refused, "why");
}

TEST_F(WorkerCallsTest, BusyWorkerWaitsForTheCommit) {
  Worker& worker = AddWorker("w");
  AddWork();
  Call(worker);
  ASSERT_THAT(reply_->start, SizeIs(1));
  worker.commits.begun = 1;
  worker.news.durable = {"old"};
  Call(worker);
  EXPECT_FALSE(reply_.has_value());
  worker.commits.End();
  calls_.Wake(worker);
  RunDeferred();
  EXPECT_THAT(reply_->durable, ElementsAre("old"));
}

TEST_F(WorkerCallsTest, CloseAnswersPendingAndLaterCalls) {
  Worker& worker = AddWorker("w");
  Call(worker);
  calls_.Close();
  RunDeferred();
  EXPECT_TRUE(reply_.has_value());
  Call(worker);
  EXPECT_TRUE(reply_.has_value());
}

}  // namespace
}  // namespace hone::fleet
