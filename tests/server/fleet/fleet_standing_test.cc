// Draining, removing and resuming workers; stealing from slow workers.

#include <deque>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fleet/fleet_harness.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class StandingTest : public ::testing::Test, protected Harness {};

TEST_F(StandingTest, DrainedWorkerFinishesAndGetsNoNewWork) {
  auto begun = Submit(Item("job", 1));
  auto queued = Submit(Item("job", 2));
  FakeWorker worker = FakeWorker::Both("w", 2);
  worker.Call(fleet);
  worker.SetPhase(worker.started.at(0).lease_id, LeasePhase::kRunning);
  worker.Call(fleet, absl::Seconds(5));
  ASSERT_THAT(fleet.Drain("w", false), IsOk());
  ASSERT_TRUE(worker.reply.has_value()) << "it is told at once";
  EXPECT_TRUE(worker.reply->drain);
  EXPECT_THAT(worker.cancelled, ElementsAre(worker.started[1].lease_id));
  EXPECT_TRUE(fleet.Workers().at(0).drained);

  worker.Finish(worker.started[0].lease_id, Measured(1));
  worker.Call(fleet);
  EXPECT_TRUE(begun->called);
  EXPECT_THAT(worker.started, SizeIs(2));
  worker.Call(fleet, absl::Seconds(5));
  EXPECT_FALSE(worker.reply.has_value()) << "no work: the call is held";

  ASSERT_THAT(fleet.Drain("w", true), IsOk());
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_FALSE(worker.reply->drain);
  EXPECT_THAT(worker.started, SizeIs(3));
  EXPECT_FALSE(queued->called);
  EXPECT_THAT(fleet.Drain("nobody", false), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StandingTest, DrainingDoesNotCountAsAnAttempt) {
  auto answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  for (int i = 0; i < 2 * FleetOptions().max_attempts; ++i) {
    worker.Call(fleet);
    ASSERT_THAT(fleet.Drain("w", false), IsOk());
    ASSERT_THAT(fleet.Drain("w", true), IsOk());
    worker.Call(fleet);
  }
  EXPECT_FALSE(answer->called);
}

TEST_F(StandingTest, RemovedWorkerIsRejectedUntilResumed) {
  auto answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  worker.SetPhase(worker.started.at(0).lease_id, LeasePhase::kRunning);
  worker.Call(fleet);
  EXPECT_EQ(*fleet.Remove("w"), 1);
  EXPECT_THAT(fleet.Workers(), IsEmpty());
  EXPECT_EQ(fleet.Counts().items_waiting, 1) << "its lease was returned";

  const std::string lease = worker.started[0].lease_id;
  worker.Finish(lease, Measured(1));
  worker.Call(fleet, absl::Seconds(5));
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_THAT(worker.reply->refused, HasSubstr("administrator"));
  EXPECT_LE(worker.reply->next_call, absl::Seconds(5)) << "it may be resumed";
  EXPECT_THAT(worker.durable, ElementsAre(lease)) << "the result is refused for good";
  EXPECT_FALSE(answer->called);
  EXPECT_THAT(fleet.Workers(), IsEmpty());

  worker.Restart("second");
  worker.Call(fleet);
  EXPECT_THAT(worker.started, IsEmpty()) << "a new process is refused as well";
  ASSERT_THAT(fleet.Drain("w", true), IsOk());
  worker.Call(fleet);
  EXPECT_THAT(worker.started, SizeIs(1));
  EXPECT_THAT(fleet.Remove("nobody"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StandingTest, IdleWorkerStealsFromASlowOne) {
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 8; ++i) answers.push_back(Submit(Item("job", i)));
  FakeWorker slow = FakeWorker::Both("slow", 8);
  slow.Call(fleet);
  ASSERT_THAT(slow.started, SizeIs(8));
  slow.SetPhase(slow.started[0].lease_id, LeasePhase::kBuilding);
  slow.Call(fleet, absl::Seconds(8));
  FakeWorker quick = FakeWorker::Both("quick", 8);
  quick.Call(fleet, absl::Seconds(8));
  Pass(FleetOptions().steal_after / 2);
  EXPECT_THAT(quick.started, IsEmpty()) << "too early to call it slow";
  Pass(FleetOptions().steal_after / 2);
  EXPECT_THAT(quick.started, SizeIs(4)) << "half of the seven waiting items";
  EXPECT_THAT(slow.cancelled, SizeIs(4)) << "it is told at once";
  EXPECT_EQ(fleet.Counts().stolen, 4);
  // The slow worker had already finished one of the items. Only the answer of the new holder
  // counts.
  const std::string stolen = slow.cancelled[0];
  slow.report.finished.push_back({stolen, Measured(99)});
  slow.Call(fleet);
  EXPECT_THAT(slow.durable, ElementsAre(stolen));
  const std::vector<LeaseGrant> granted = quick.started;
  for (const LeaseGrant& lease : granted) quick.Finish(lease.lease_id, Measured(7));
  quick.Call(fleet);
  int answered = 0;
  for (const auto& answer : answers) {
    if (!answer->called) continue;
    ++answered;
    EXPECT_EQ(answer->result->result.latency_ns, 7);
  }
  EXPECT_EQ(answered, 4);
}

TEST_F(StandingTest, WorkerStatesSurviveRestart) {
  fleet.standings().Adopt({{.worker_id = "drained", .drained = true},
                           {.worker_id = "flagged", .refused = "it lies"},
                           {.worker_id = "removed", .refused = "go", .removed = true}});
  Submit(Item("job", 1));
  for (const char* const name : {"drained", "flagged", "removed"}) {
    FakeWorker worker = FakeWorker::Both(name, 1);
    worker.Call(fleet);
    EXPECT_THAT(worker.started, IsEmpty()) << name;
    EXPECT_EQ(fleet.standings().Of(name).worker_id, name);
  }
  EXPECT_THAT(fleet.Workers(), SizeIs(2)) << "a removed worker is not admitted";
  EXPECT_TRUE(fleet.standings().Of("drained").drained);
  EXPECT_EQ(fleet.standings().Of("flagged"),
            (Standing{.worker_id = "flagged", .refused = "it lies"}));
  EXPECT_TRUE(fleet.standings().Of("removed").removed);
  EXPECT_EQ(fleet.standings().Of("nobody"), Standing{.worker_id = "nobody"});
  EXPECT_THAT(
      fleet.Drain("removed", false),
      StatusIs(
          absl::StatusCode::kNotFound,
          "worker removed was removed, so it gets no work; \"hone workers resume removed\" admits "
          "it again"));
  ASSERT_THAT(fleet.Drain("removed", true), IsOk());
  EXPECT_EQ(fleet.standings().Of("removed"), Standing{.worker_id = "removed"});
}

TEST_F(StandingTest, DrainedWorkerStaysDrainedAfterALongAbsence) {
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  ASSERT_THAT(fleet.Drain("w", false), IsOk());
  for (absl::Duration t; t < 2 * FleetOptions().forget_after; t += absl::Seconds(30)) {
    Pass(absl::Seconds(30));
  }
  ASSERT_THAT(fleet.Workers(), IsEmpty());
  Submit(Item("job", 1));
  worker.Restart("second");
  worker.Call(fleet);
  EXPECT_TRUE(worker.reply->drain);
  EXPECT_THAT(worker.started, IsEmpty());
}

TEST(FlagTest, StandingCallbackIsCalled) {
  std::vector<std::string> told;
  Fleet* fleet = nullptr;
  FleetOptions options;
  options.on_standing = [&](const std::string& id) {
    told.push_back(id);
    EXPECT_FALSE(fleet->standings().Of(id).refused.empty()) << "the callback may call standings()";
  };
  Harness harness(options);
  fleet = &harness.fleet;
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(harness.fleet);
  harness.fleet.Flag("w", "it lies");
  EXPECT_THAT(told, ElementsAre("w"));
  harness.Submit(harness.Item("job", 1));
  FakeWorker other = FakeWorker::Both("x", 1);
  other.Call(harness.fleet);
  other.Finish(other.started.at(0).lease_id, Measured(-1));
  other.Call(harness.fleet);
  EXPECT_THAT(told, ElementsAre("w", "x"));
}

TEST_F(StandingTest, ListsAbsentWorkersWithSpecialStates) {
  fleet.standings().Adopt({{.worker_id = "a", .drained = true},
                           {.worker_id = "c", .refused = "it lies"},
                           {.worker_id = "d", .refused = "go", .removed = true}});
  FakeWorker worker = FakeWorker::Both("b", 1);
  worker.Call(fleet);
  EXPECT_THAT(fleet.Workers(), SizeIs(1));
  const std::vector<WorkerInfo> known = fleet.KnownWorkers();
  ASSERT_THAT(known, SizeIs(4));
  EXPECT_EQ(known[0].id, "a");
  EXPECT_TRUE(known[0].drained);
  EXPECT_FALSE(known[0].connected);
  EXPECT_EQ(known[0].silent, absl::InfiniteDuration());
  EXPECT_EQ(known[1].id, "b");
  EXPECT_TRUE(known[1].connected);
  EXPECT_EQ(known[2].flagged, "it lies");
  EXPECT_EQ(known[3].flagged, "go");

  EXPECT_TRUE(fleet.Drain("a", false)->drained) << "a listed worker can be drained";
  EXPECT_EQ(fleet.Drain("c", false)->flagged, "it lies");
  ASSERT_THAT(fleet.Remove("a"), IsOk());
  EXPECT_TRUE(fleet.standings().Of("a").removed);
  EXPECT_THAT(fleet.Remove("a"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("worker a is already removed")));
  EXPECT_THAT(fleet.Remove("nobody"), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StandingTest, OnlySlowWorkerKeepsItsWork) {
  for (int i = 0; i < 4; ++i) Submit(Item("job", i));
  FakeWorker slow = FakeWorker::Both("slow", 4);
  slow.Call(fleet);
  FakeWorker other = FakeWorker::Both("other", 4);
  other.report.capabilities.target_key = "another";
  other.Call(fleet, absl::Seconds(8));
  Pass(FleetOptions().steal_after);
  Pass(FleetOptions().steal_after);
  EXPECT_THAT(other.started, IsEmpty());
  EXPECT_EQ(fleet.Counts().stolen, 0);
}

}  // namespace
}  // namespace hone::fleet
