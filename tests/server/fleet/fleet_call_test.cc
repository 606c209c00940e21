// Worker calls, queue order, cancellation, work that no device can do, targets and requested
// artifacts.

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"
#include "common/base/sha256.h"
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

class CallTest : public ::testing::Test, protected Harness {};

TEST_F(CallTest, AnIdleCallIsHeldUntilWorkArrives) {
  FakeWorker worker = FakeWorker::Both("w", 4);
  worker.Call(fleet, absl::Seconds(30));
  EXPECT_FALSE(worker.reply.has_value());
  Submit(Item("job", 1));
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_THAT(worker.started, SizeIs(1));
}

TEST_F(CallTest, AnIdleCallIsAnsweredWhenItsTimeIsUp) {
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet, absl::Hours(1));
  Pass(FleetOptions().max_wait() * 0.7);
  EXPECT_FALSE(worker.reply.has_value());
  Pass(FleetOptions().max_wait() * 0.3);
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_TRUE(worker.reply->IsEmpty());
}

TEST_F(CallTest, ASecondCallAnswersTheFirst) {
  FakeWorker worker = FakeWorker::Both("w", 1);
  bool first_answered = false;
  WorkerReport report = worker.report;
  report.max_wait = absl::Seconds(30);
  fleet.Synchronize(report, [&](SynchronizeReply reply) {
    first_answered = true;
    EXPECT_TRUE(reply.IsEmpty());
  });
  EXPECT_FALSE(first_answered);
  worker.Call(fleet, absl::Seconds(30));
  EXPECT_TRUE(first_answered);
  EXPECT_FALSE(worker.reply.has_value());
}

TEST_F(CallTest, BusyWorkerGetsLeasesWithTheAcknowledgment) {
  auto first = Submit(Item("job", 1));
  Submit(Item("job", 2));
  FakeWorker worker = FakeWorker::Both("w", 2);
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(2));
  const std::string done = worker.started[0].lease_id;
  Submit(Item("job", 3));
  worker.Finish(done, Measured(1));
  worker.Call(fleet, absl::Seconds(30));
  EXPECT_FALSE(worker.reply.has_value()) << "it still holds another lease";
  Submit(Item("job", 4));
  EXPECT_FALSE(worker.reply.has_value());
  std::move(first->acknowledge)();
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_THAT(worker.durable, ElementsAre(done));
  EXPECT_THAT(worker.started, SizeIs(3));
}

// Results arrive faster than the disk commits them: at any time one of them is not durable yet.
TEST_F(CallTest, SteadyResultsDoNotDelayAcknowledgments) {
  FakeWorker worker = FakeWorker::Both("w", 8);
  std::vector<std::shared_ptr<Answer>> answers;
  for (int i = 0; i < 20; ++i) answers.push_back(Submit(Item("job", i)));
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(8));
  for (int i = 0; i < 7; ++i) {
    worker.Finish(worker.started[i].lease_id, Measured(1 + i));
    worker.Call(fleet, absl::Seconds(30));
    if (i > 0) std::move(answers[i - 1]->acknowledge)();  // the result of the previous call
  }
  EXPECT_GE(worker.durable.size(), 5u);  // the last ones may wait for another commit
  EXPECT_GT(worker.started.size(), 8u);
}

TEST_F(CallTest, IdleWorkerDoesNotWaitForTheCommit) {
  auto first = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  Submit(Item("job", 2));
  worker.Finish(worker.started.at(0).lease_id, Measured(1));
  worker.Call(fleet, absl::Seconds(30));
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_THAT(worker.started, SizeIs(2));
}

TEST_F(CallTest, UncommittedResultDoesNotDelayLeases) {
  auto first = Submit(Item("job", 1));
  Submit(Item("job", 2));
  FakeWorker worker = FakeWorker::Both("w", 2);
  worker.Call(fleet);
  Submit(Item("job", 3));
  worker.Finish(worker.started.at(0).lease_id, Measured(1));
  worker.Call(fleet, absl::Seconds(30));
  ASSERT_FALSE(worker.reply.has_value());
  first->acknowledge = nullptr;  // the owner drops the result
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_THAT(worker.started, SizeIs(3));
}

TEST_F(CallTest, ACancelDoesNotWaitForACommit) {
  Submit(Item("job", 1));
  Submit(Item("other", 2));
  FakeWorker worker = FakeWorker::Both("w", 2);
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(2));
  std::string mine, theirs;
  for (const LeaseGrant& lease : worker.started) {
    (lease.work->job_id == "job" ? mine : theirs) = lease.lease_id;
  }
  worker.Finish(mine, Measured(1));
  worker.Call(fleet, absl::Seconds(30));
  fleet.CancelJob("other");
  EXPECT_THAT(worker.cancelled, ElementsAre(theirs));
}

TEST_F(CallTest, FullWorkerRestsUntilItFinishesWork) {
  Submit(Item("job", 1));
  Submit(Item("job", 2));
  FakeWorker full = FakeWorker::Both("full", 1);
  full.Call(fleet, absl::Seconds(30));
  ASSERT_TRUE(full.reply.has_value());
  EXPECT_EQ(full.reply->next_call, FleetOptions().rest());
  FakeWorker other = FakeWorker::Both("other", 2);
  other.Call(fleet, absl::Seconds(30));
  ASSERT_THAT(other.started, SizeIs(1));
  EXPECT_LT(other.reply->next_call, absl::Milliseconds(5)) << "it has a free slot";
}

TEST_F(CallTest, BusyWorkersOfALargeFleetCallLessOften) {
  FakeWorker busy = FakeWorker::Both("w", 2);
  for (int i = 0; i < 400; ++i) FakeWorker::Both(absl::StrCat("other", i), 2).Call(fleet);
  Submit(Item("job", 1));
  busy.Call(fleet, absl::Seconds(30));
  ASSERT_THAT(busy.started, SizeIs(1));
  EXPECT_GE(busy.reply->next_call, absl::Milliseconds(100));
  EXPECT_LE(busy.reply->next_call, FleetOptions().rest());
  FakeWorker idle = FakeWorker::Both("idle", 2);
  idle.Call(fleet);
  EXPECT_EQ(idle.reply->next_call, absl::ZeroDuration());
}

TEST_F(CallTest, WorkDoesNotWakeAFullWorker) {
  Submit(Item("job", 1));
  FakeWorker full = FakeWorker::Both("a", 1);
  full.Call(fleet);
  full.Call(fleet, absl::Seconds(30));
  FakeWorker idle = FakeWorker::Both("b", 1);
  idle.Call(fleet, absl::Seconds(30));
  Submit(Item("job", 2));
  EXPECT_FALSE(full.reply.has_value());
  EXPECT_THAT(idle.started, SizeIs(1));
}

TEST_F(CallTest, ADeviceIsFoundByItsTarget) {
  FakeWorker first = FakeWorker::Both("a", 1);
  FakeWorker second = FakeWorker::Both("b", 1);
  second.report.capabilities.peak_gflops = 7;
  first.Call(fleet);
  second.Call(fleet);
  EXPECT_THAT(fleet.Targets(), ElementsAre("t"));
  ASSERT_TRUE(fleet.DeviceOf("t").has_value());
  EXPECT_EQ(fleet.DeviceOf("t")->peak_gflops, 7) << "taken from the worker that reports a peak";
  EXPECT_FALSE(fleet.DeviceOf("another").has_value());
}

TEST_F(CallTest, AnotherRunnerIsTheLeastLoaded) {
  FakeWorker busy = FakeWorker::Both("a", 1);
  FakeWorker idle = FakeWorker::Both("b", 1);
  FakeWorker asker = FakeWorker::Both("c", 1);
  Submit(Item("job", 1));
  busy.Call(fleet);
  idle.Call(fleet);
  asker.Call(fleet);
  EXPECT_EQ(fleet.AnotherRunner("t", {"c"}), "b");
  EXPECT_EQ(fleet.AnotherRunner("t", {"b", "c"}), "a");
  EXPECT_EQ(fleet.AnotherRunner("t", {"a", "b", "c"}), "");
}

TEST_F(CallTest, LostReplyIsRepeatedWithTheSameLeaseId) {
  Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  const WorkerReport before = worker.report;
  worker.Call(fleet);
  const std::string lease = worker.started.at(0).lease_id;
  worker.report = before;  // as if the reply had been lost
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(2));
  EXPECT_EQ(worker.started[1].lease_id, lease);
}

TEST_F(CallTest, AnAbandonedCallIsNotAnswered) {
  FakeWorker worker = FakeWorker::Both("w", 1);
  const uint64_t token = worker.Call(fleet, absl::Seconds(30));
  fleet.Abandon(token);
  Submit(Item("job", 1));
  EXPECT_FALSE(worker.reply.has_value());
  worker.Call(fleet);
  EXPECT_THAT(worker.started, SizeIs(1));
}

TEST_F(CallTest, UnknownLeasesAreCancelled) {
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.report.held.push_back({"of-an-earlier-server", LeasePhase::kRunning});
  worker.report.finished.push_back({"also-earlier", Measured(1)});
  worker.Call(fleet);
  EXPECT_THAT(worker.cancelled, ElementsAre("of-an-earlier-server"));
  EXPECT_THAT(worker.durable, ElementsAre("also-earlier"));
}

TEST_F(CallTest, SlowlyStoppingLeaseDoesNotCauseBusyCalls) {
  FakeWorker worker = FakeWorker::Both("w", 1);
  const HeldLease stubborn{"of-an-earlier-server", LeasePhase::kRunning};
  worker.report.held = {stubborn};
  worker.Call(fleet);
  EXPECT_THAT(worker.cancelled, SizeIs(1));
  worker.report.held = {stubborn};
  worker.Call(fleet, absl::Seconds(30));
  EXPECT_FALSE(worker.reply.has_value()) << "already cancelled: the call is held";
  clock.Advance(FleetOptions().cancel_retry);
  worker.report.held = {stubborn};
  worker.Call(fleet);
  EXPECT_THAT(worker.cancelled, SizeIs(2)) << "the cancellation is repeated";
}

TEST_F(CallTest, JobsShareTheWorkersAndPriorityGoesFirst) {
  for (int i = 0; i < 3; ++i) Submit(Item("a", i));
  for (int i = 0; i < 3; ++i) Submit(Item("b", i));
  WorkItem urgent = Item("urgent", 0);
  urgent.priority = kHighPriority;
  Submit(urgent);
  FakeWorker worker = FakeWorker::Both("w", 5);
  worker.Call(fleet);
  std::vector<std::string> jobs;
  for (const LeaseGrant& lease : worker.started) jobs.push_back(lease.work->job_id);
  EXPECT_THAT(jobs, ElementsAre("urgent", "a", "b", "a", "b"));
}

TEST_F(CallTest, CancelEndsWaitingAndLeasedItems) {
  auto leased = Submit(Item("job", 1));
  auto waiting = Submit(Item("job", 2));
  auto other = Submit(Item("other", 3));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  fleet.CancelJob("job");
  EXPECT_THAT(leased->result.status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_THAT(waiting->result.status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_FALSE(other->called);
  worker.Call(fleet);
  EXPECT_THAT(worker.cancelled, SizeIs(1));
}

TEST_F(CallTest, CancelWaitingLeavesRunningItems) {
  auto running = Submit(Item("job", 1));
  auto queued = Submit(Item("job", 2));
  auto waiting = Submit(Item("job", 3));
  FakeWorker worker = FakeWorker::Both("w", 2);
  worker.Call(fleet);
  worker.SetPhase(worker.started.at(0).lease_id, LeasePhase::kBuilding);
  worker.Call(fleet);
  fleet.CancelWaiting("job");
  EXPECT_FALSE(running->called);
  EXPECT_TRUE(queued->called);
  EXPECT_TRUE(waiting->called);
}

// Only a job knows how long it waits; its work waits until then.
TEST_F(CallTest, WorkWaitsForALostWorker) {
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  auto answer = Submit(Item("job", 1));
  Pass(FleetOptions().silence_limit());
  EXPECT_FALSE(fleet.Workers().at(0).connected);
  Pass(FleetOptions().forget_after);
  EXPECT_THAT(fleet.Workers(), IsEmpty());
  EXPECT_FALSE(answer->called);
  worker.Restart("again");
  worker.Call(fleet);
  EXPECT_THAT(worker.started, SizeIs(1));
}

TEST_F(CallTest, WorkerListShowsTheLastError) {
  Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  EXPECT_EQ(fleet.Workers().at(0).leases, 1);
  EXPECT_TRUE(fleet.Workers().at(0).connected);
  Pass(FleetOptions().silence_limit());
  EXPECT_FALSE(fleet.Workers().at(0).connected);
  EXPECT_THAT(fleet.Workers().at(0).last_error, HasSubstr("lost"));
  EXPECT_EQ(fleet.Workers().at(0).leases, 0);
  worker.Restart("again");
  worker.Call(fleet);
  EXPECT_TRUE(fleet.Workers().at(0).connected);
  EXPECT_EQ(fleet.Workers().at(0).last_error, "") << "it is back";
}

TEST_F(CallTest, AnnouncedShutdownIsNotALoss) {
  auto answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  for (int i = 0; i < 2 * FleetOptions().max_killed_workers; ++i) {
    worker.Call(fleet);
    ASSERT_THAT(worker.started, SizeIs(1)) << i;
    worker.SetPhase(worker.started[0].lease_id, LeasePhase::kRunning);
    worker.report.draining = true;
    worker.Call(fleet);
    worker.report.draining = false;
    worker.Restart("restart " + std::to_string(i));
  }
  EXPECT_FALSE(answer->called) << "the candidate did not kill the worker";
  worker.report.draining = true;
  worker.Call(fleet);
  for (int i = 0; i < 2; ++i) {
    EXPECT_FALSE(fleet.Workers().at(0).connected) << "its last call announced its end";
    EXPECT_EQ(fleet.Workers().at(0).last_error, "");
    EXPECT_TRUE(fleet.Workers().at(0).stopping);
    EXPECT_FALSE(fleet.Workers().at(0).drained) << "no administrator drained it";
    Pass(FleetOptions().silence_limit());
  }
  worker.report.draining = false;
  worker.Restart("started again");
  worker.Call(fleet);
  EXPECT_FALSE(fleet.Workers().at(0).stopping);
}

// What a worker was running when it was stopped is not lost for the time of its silence.
TEST_F(CallTest, AnotherWorkerGetsTheLeasesOfAStoppedWorkerAtOnce) {
  Submit(Item("job", 1));
  FakeWorker first = FakeWorker::Both("first", 1);
  first.Call(fleet);
  ASSERT_THAT(first.started, SizeIs(1));
  first.SetPhase(first.started[0].lease_id, LeasePhase::kRunning);
  FakeWorker second = FakeWorker::Both("second", 1);
  second.Call(fleet, absl::Seconds(30));
  EXPECT_THAT(second.started, IsEmpty());
  first.report.draining = true;
  first.Call(fleet, absl::Seconds(30));
  EXPECT_TRUE(first.reply.has_value()) << "its last call is answered";
  EXPECT_THAT(second.started, SizeIs(1)) << "the held call is answered with the lease";
}

TEST_F(CallTest, ResultsOfTheLastCallCount) {
  auto answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(1));
  worker.Finish(worker.started[0].lease_id, Measured(1e6));
  worker.report.draining = true;
  worker.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->result.latency_ns, 1e6);
  std::move(answer->acknowledge)();
  EXPECT_THAT(fleet.Workers().at(0).leases, 0);
}

TEST_F(CallTest, RequestsArtifactsUntilTheyArrive) {
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet, absl::Seconds(30));
  const std::string digest = Sha256Of("winner");
  fleet.KeepArtifact(digest, "w");
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_THAT(worker.reply->keep_artifacts, ElementsAre(digest));
  worker.Call(fleet);
  EXPECT_THAT(worker.reply->keep_artifacts, IsEmpty()) << "not requested twice at a time";
  Pass(FleetOptions().keep_retry);
  worker.Call(fleet);
  EXPECT_THAT(worker.reply->keep_artifacts, ElementsAre(digest));
  ASSERT_THAT(artifacts.Put(digest, "winner"), IsOk());
  fleet.ArtifactArrived(digest);
  Pass(FleetOptions().keep_retry);
  worker.Call(fleet);
  EXPECT_THAT(worker.reply->keep_artifacts, IsEmpty());
}

TEST_F(CallTest, NativeResolvesToTheOnlyTarget) {
  absl::StatusOr<TargetChoice> choice = absl::UnknownError("");
  auto keep = [&](absl::StatusOr<TargetChoice> c) { choice = std::move(c); };
  fleet.AwaitTarget("", absl::Seconds(10), keep);
  EXPECT_THAT(choice, StatusIs(absl::StatusCode::kUnknown)) << "the call waits";
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet, absl::Hours(1));
  ASSERT_THAT(choice, IsOk());
  EXPECT_EQ(choice->key, "t");
  EXPECT_EQ(choice->text, "target text");

  FakeWorker other = FakeWorker::Both("other", 1);
  other.report.capabilities.target_key = "u";
  other.Call(fleet, absl::Hours(1));
  fleet.AwaitTarget("", absl::Seconds(10), keep);
  EXPECT_THAT(choice, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("t, u")));
  fleet.AwaitTarget("u", absl::ZeroDuration(), keep);
  EXPECT_EQ(choice->key, "u");
}

TEST_F(CallTest, MissingTargetIsRejectedWithAdvice) {
  absl::StatusOr<TargetChoice> choice = absl::UnknownError("");
  fleet.AwaitTarget("v", absl::Seconds(10),
                    [&](absl::StatusOr<TargetChoice> c) { choice = std::move(c); });
  Pass(absl::Seconds(9));
  EXPECT_THAT(choice, StatusIs(absl::StatusCode::kUnknown));
  Pass(absl::Seconds(1));
  EXPECT_THAT(choice,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("start hone-worker")));
}

TEST(TargetBoundTest, TheNumberOfCallsThatWaitForATargetIsLimited) {
  Harness harness({.max_target_waits = 1});
  int answered = 0;
  absl::Status last;
  const auto note = [&](const absl::StatusOr<TargetChoice>& choice) {
    ++answered;
    last = choice.status();
  };
  harness.fleet.AwaitTarget("t", absl::Seconds(10), note);
  EXPECT_EQ(answered, 0);
  harness.fleet.AwaitTarget("t", absl::Seconds(10), note);
  EXPECT_EQ(answered, 1);
  EXPECT_THAT(last, StatusIs(absl::StatusCode::kResourceExhausted));
  FakeWorker other = FakeWorker::Both("other", 1);
  other.report.capabilities.target_key = "u";
  other.Call(harness.fleet);
  EXPECT_EQ(answered, 1);
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(harness.fleet);
  EXPECT_EQ(answered, 2);
  EXPECT_THAT(last, IsOk());
}

TEST_F(CallTest, ShutdownAnswersHeldCalls) {
  FakeWorker worker = FakeWorker::Both("w", 0);
  auto answer = Submit(Item("job", 1));
  worker.Call(fleet, absl::Hours(1));
  fleet.Shutdown();
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_GT(worker.reply->next_call, absl::ZeroDuration());
  EXPECT_FALSE(answer->called);
}

}  // namespace
}  // namespace hone::fleet
