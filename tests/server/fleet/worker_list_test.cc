#include "server/fleet/worker_list.h"

#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fleet/fleet_parts.h"

namespace hone::fleet {
namespace {

using ::testing::ElementsAre;

class WorkerListTest : public FleetPartsTest {
 protected:
  WorkerListTest() : FleetPartsTest({.instance = "test"}) {}
  Worker& Add(const std::string& id, Capabilities capabilities) {
    Worker& worker = registry_.Add(id);
    WorkerReport report{.worker_id = id, .epoch = "1", .capabilities = std::move(capabilities)};
    registry_.Update(worker, report, clock_.Now());
    return worker;
  }
  static std::vector<std::string> Names(const std::vector<WorkerInfo>& workers) {
    std::vector<std::string> names;
    for (const WorkerInfo& worker : workers) names.push_back(worker.id);
    return names;
  }
};

TEST_F(WorkerListTest, OnlyTheStandingOfAnAbsentWorkerIsKnown) {
  Add("b", {.target_key = "x86-t", .can_run = true});
  standings_.Change({.worker_id = "a", .refused = "it lies"}, false, true);
  EXPECT_THAT(Names(list_.Registered()), ElementsAre("b"));
  EXPECT_THAT(Names(list_.Known()), ElementsAre("a", "b"));
  EXPECT_EQ(list_.Find("a"), std::nullopt);
  const WorkerInfo absent = list_.Of("a");
  EXPECT_EQ(absent.flagged, "it lies");
  EXPECT_EQ(absent.silent, absl::InfiniteDuration());
  EXPECT_FALSE(absent.TakesWork());
  EXPECT_TRUE(list_.Find("b")->TakesWork());
}

TEST_F(WorkerListTest, ATargetIsServedWhileARunnerAndABuilderCall) {
  Worker& runner = Add("runner", {.target_key = "x86-t", .can_run = true});
  EXPECT_FALSE(list_.IsServed("x86-t")) << "no worker builds";
  Worker& builder = Add("builder", {.target_key = "x86-u", .can_build = true});
  EXPECT_TRUE(list_.IsServed("x86-t"));
  EXPECT_FALSE(list_.IsServed("x86-u")) << "no worker runs it";
  standings_.Change({.worker_id = "builder", .drained = true}, true, false);
  EXPECT_FALSE(list_.IsServed("x86-t"));
  standings_.Change({.worker_id = "builder"}, true, false);
  clock_.Advance(absl::Seconds(5));
  EXPECT_FALSE(list_.IsServed("x86-t")) << "they are silent";
  for (Worker* const worker : {&runner, &builder}) {
    calls_.Take(*worker, absl::Seconds(8), [](const SynchronizeReply&) {});
  }
  clock_.Advance(absl::Seconds(5));
  EXPECT_TRUE(list_.IsServed("x86-t")) << "their calls are held";
  EXPECT_EQ(list_.Of("runner").silent, absl::ZeroDuration());
  runner.leaving = true;
  EXPECT_FALSE(list_.IsServed("x86-t"));
}

TEST_F(WorkerListTest, AWorkerShowsTheLeasesThatItHasStarted) {
  Add("w", {.target_key = "x86-t", .can_build = true, .can_run = true});
  const auto any = [](const auto&) { return true; };
  for (const char* const op : {"matmul", "conv2d", "relu"}) {
    book_.queue().Add({.job_id = "7", .op = op, .target_key = "x86-t"}, [](auto, auto) {});
  }
  const auto grant = [&]() -> std::string {
    const Lease* const lease = book_.Grant("w", clock_.Now(), any, any, any);
    return lease == nullptr ? "" : lease->id;
  };
  book_.End(grant(), {.why = "lost"});  // the first attempt
  const std::string again = grant(), second = grant();
  grant();  // stays queued
  const auto start = [&](const std::string& id, LeasePhase phase) {
    Lease* const lease = book_.Find(id);
    lease->phase = phase;
    lease->phase_since = clock_.Now();
  };
  start(again, LeasePhase::kRunning);
  clock_.Advance(absl::Seconds(3));
  start(second, LeasePhase::kBuilding);
  clock_.Advance(absl::Seconds(2));
  const WorkerInfo worker = list_.Of("w");
  EXPECT_EQ(worker.leases, 3);
  ASSERT_EQ(worker.activities.size(), 2u);
  EXPECT_EQ(worker.activities[0].work->op, "matmul");
  EXPECT_TRUE(worker.activities[0].running);
  EXPECT_EQ(worker.activities[0].duration, absl::Seconds(5));
  EXPECT_EQ(worker.activities[0].attempt, 2);
  EXPECT_EQ(worker.activities[1].work->op, "conv2d");
  EXPECT_FALSE(worker.activities[1].running);
  EXPECT_EQ(worker.activities[1].duration, absl::Seconds(2));
  EXPECT_EQ(worker.activities[1].attempt, 1);
}

TEST_F(WorkerListTest, ASecondProcessIsMentionedForAWhile) {
  Worker& worker = Add("w", {.target_key = "x86-t", .can_run = true});
  worker.last_error = "crash: why";
  worker.rival = "another process uses the name";
  worker.rival_seen = clock_.Now();
  EXPECT_EQ(list_.Of("w").last_error, "another process uses the name");
  clock_.Advance(options_.rival_limit());
  EXPECT_EQ(list_.Of("w").last_error, "crash: why");
}

TEST_F(WorkerListTest, AWorkerThatOnlyRunsNamesItsBuilder) {
  Add("runner", {.target_key = "x86-t", .can_run = true});
  Add("builder", {.target_key = "x86-u",
                  .can_build = true,
                  .environment = {.compiler = "hone 7", .codegen_version = 7}});
  for (const WorkerInfo& worker : list_.Registered()) {
    EXPECT_EQ(worker.capabilities.environment.codegen_version, 7) << worker.id;
  }
}

}  // namespace
}  // namespace hone::fleet
