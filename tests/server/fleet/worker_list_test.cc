// Descriptions of workers, for lists and look-ups.

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fleet/fleet_harness.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class WorkerListTest : public ::testing::Test, protected Harness {
 protected:
  static FakeWorker Of(const std::string& id, Capabilities capabilities) {
    FakeWorker worker = FakeWorker::Both(id, 4);
    worker.report.capabilities = std::move(capabilities);
    return worker;
  }
  static std::vector<std::string> Names(const std::vector<WorkerInfo>& workers) {
    std::vector<std::string> names;
    for (const WorkerInfo& worker : workers) names.push_back(worker.id);
    return names;
  }
};

TEST_F(WorkerListTest, OnlyTheStandingOfAnAbsentWorkerIsKnown) {
  fleet.standings().Adopt({{.worker_id = "a", .refused = "it lies"}});
  Of("b", {.target_key = "x86-t", .can_run = true}).Call(fleet);
  EXPECT_THAT(Names(fleet.Workers()), ElementsAre("b"));
  const std::vector<WorkerInfo> known = fleet.KnownWorkers();
  ASSERT_THAT(Names(known), ElementsAre("a", "b"));
  EXPECT_EQ(fleet.FindWorker("a"), std::nullopt);
  EXPECT_EQ(known[0].flagged, "it lies");
  EXPECT_EQ(known[0].silent, absl::InfiniteDuration());
  EXPECT_FALSE(known[0].TakesWork());
  EXPECT_TRUE(fleet.FindWorker("b")->TakesWork());
}

TEST_F(WorkerListTest, ATargetIsServedWhileARunnerAndABuilderCall) {
  FakeWorker runner = Of("runner", {.target_key = "x86-t", .can_run = true});
  FakeWorker builder = Of("builder", {.target_key = "x86-u", .can_build = true});
  runner.Call(fleet);
  EXPECT_FALSE(fleet.IsServed("x86-t")) << "no worker builds";
  builder.Call(fleet);
  EXPECT_TRUE(fleet.IsServed("x86-t"));
  EXPECT_FALSE(fleet.IsServed("x86-u")) << "no worker runs it";
  ASSERT_THAT(fleet.Drain("builder", /*resume=*/false), IsOk());
  EXPECT_FALSE(fleet.IsServed("x86-t"));
  ASSERT_THAT(fleet.Drain("builder", /*resume=*/true), IsOk());
  clock.Advance(absl::Seconds(5));
  EXPECT_FALSE(fleet.IsServed("x86-t")) << "they are silent";
  builder.Call(fleet);  // which tells it that it was resumed
  for (FakeWorker* const worker : {&runner, &builder}) worker->Call(fleet, absl::Seconds(8));
  clock.Advance(absl::Seconds(5));
  EXPECT_TRUE(fleet.IsServed("x86-t")) << "their calls are held";
  EXPECT_EQ(fleet.FindWorker("runner")->silent, absl::ZeroDuration());
  runner.report.draining = true;
  runner.Call(fleet);
  EXPECT_FALSE(fleet.IsServed("x86-t"));
}

TEST_F(WorkerListTest, AWorkerShowsTheLeasesThatItHasStarted) {
  const auto submit = [this](const std::string& op) {
    WorkItem item = Item("7", 1);
    item.op = op;
    Submit(std::move(item));
  };
  FakeWorker worker = FakeWorker::Both("w", 3);
  submit("matmul");
  worker.Call(fleet);
  worker.Restart("second");  // ends the first attempt
  worker.Call(fleet);
  for (const char* const op : {"conv2d", "relu"}) submit(op);
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(3));
  const std::string again = worker.started[0].lease_id, second = worker.started[1].lease_id;
  worker.SetPhase(again, LeasePhase::kRunning);
  worker.Call(fleet);
  clock.Advance(absl::Seconds(3));
  worker.SetPhase(second, LeasePhase::kBuilding);
  worker.Call(fleet);
  clock.Advance(absl::Seconds(2));
  const WorkerInfo info = *fleet.FindWorker("w");
  EXPECT_EQ(info.leases, 3);
  ASSERT_THAT(info.activities, SizeIs(2));
  EXPECT_EQ(info.activities[0].work->op, "matmul");
  EXPECT_TRUE(info.activities[0].running);
  EXPECT_EQ(info.activities[0].duration, absl::Seconds(5));
  EXPECT_EQ(info.activities[0].attempt, 2);
  EXPECT_EQ(info.activities[1].work->op, "conv2d");
  EXPECT_FALSE(info.activities[1].running);
  EXPECT_EQ(info.activities[1].duration, absl::Seconds(2));
  EXPECT_EQ(info.activities[1].attempt, 1);
}

TEST_F(WorkerListTest, ASecondProcessIsMentionedForAWhile) {
  const std::shared_ptr<Answer> answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(1));
  worker.Finish(worker.started[0].lease_id, {.outcome = record::Outcome::kCrash, .detail = "why"});
  worker.Call(fleet);
  std::move(answer->acknowledge)();
  worker.Call(fleet);
  worker.Call(fleet, absl::Seconds(10));
  EXPECT_EQ(fleet.FindWorker("w")->last_error, "crash: why");
  FakeWorker second = FakeWorker::Both("w", 1);
  second.report.epoch = "second";
  second.Call(fleet);
  EXPECT_THAT(fleet.FindWorker("w")->last_error, HasSubstr("uses the name w"));
  clock.Advance(FleetOptions().rival_limit());
  EXPECT_EQ(fleet.FindWorker("w")->last_error, "crash: why");
}

TEST_F(WorkerListTest, AWorkerThatOnlyRunsNamesItsBuilder) {
  Of("runner", {.target_key = "x86-t", .can_run = true}).Call(fleet);
  Of("builder", {.target_key = "x86-u",
                 .can_build = true,
                 .environment = {.compiler = "hone 7", .codegen_version = 7}})
      .Call(fleet);
  for (const WorkerInfo& worker : fleet.Workers()) {
    EXPECT_EQ(worker.capabilities.environment.codegen_version, 7) << worker.id;
  }
}

}  // namespace
}  // namespace hone::fleet
