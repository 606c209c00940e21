// Implausible reports of workers are refused.

#include <cmath>

#include "common/base/digest.h"
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

class DistrustTest : public ::testing::Test, protected Harness {
 protected:
  DistrustTest()
      : Harness(FleetOptions{.on_rival = [this](const std::string& worker_id, const std::string&) {
          rivals.push_back(worker_id);
        }}) {}

  // The worker takes the only item in the queue and reports this result.
  FakeWorker AnsweredBy(const std::string& id, record::MeasureResult result,
                        double peak_gflops = 100) {
    FakeWorker worker = FakeWorker::Both(id, 1);
    worker.report.capabilities.peak_gflops = peak_gflops;
    worker.Call(fleet);
    EXPECT_THAT(worker.started, SizeIs(1)) << id;
    worker.Finish(worker.started.at(0).lease_id, std::move(result));
    worker.Call(fleet);
    return worker;
  }

  std::vector<std::string> rivals;  // workers that are reported to have a second process
};

TEST_F(DistrustTest, ImpossibleResultFlagsWorkerAndRetriesElsewhere) {
  WorkItem item = Item("job", 1);
  item.fixed_flops = 1e6;  // 10,000 ns at 100 GFLOP/s
  auto answer = Submit(std::move(item));
  FakeWorker liar = AnsweredBy("liar", Measured(5000));
  EXPECT_FALSE(answer->called);
  EXPECT_THAT(liar.durable, SizeIs(1)) << "the result is refused for good";
  EXPECT_THAT(liar.reply->refused, HasSubstr("5000 ns"));
  EXPECT_THAT(fleet.Workers().at(0).flagged, HasSubstr("5000 ns"));
  EXPECT_EQ(fleet.Counts().refused_results, 1);
  liar.Call(fleet);
  EXPECT_THAT(liar.started, SizeIs(1)) << "a flagged worker gets no more work";

  AnsweredBy("honest", Measured(12000));
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->worker_id, "honest");
  EXPECT_TRUE(fleet.Workers().at(0).flagged.empty());

  ASSERT_THAT(fleet.Drain("liar", true), IsOk());
  Submit(Item("job", 2));
  liar.Call(fleet);
  EXPECT_THAT(liar.started, SizeIs(2)) << "an administrator has readmitted it";
}

TEST_F(DistrustTest, RejectsInvalidLatencies) {
  const double bad[] = {0, -1, NAN, INFINITY, 1e15};
  int number = 0;
  for (const double latency : bad) {
    auto answer = Submit(Item("job", 1));
    const std::string id = "w" + std::to_string(++number);
    AnsweredBy(id, Measured(latency));
    EXPECT_FALSE(answer->called) << latency;
    EXPECT_FALSE(fleet.Workers().back().flagged.empty()) << latency;
    fleet.CancelJob("job");
  }
  auto answer = Submit(Item("job", 1));
  FakeWorker garbled = FakeWorker::Both("x", 1);
  garbled.Call(fleet);
  garbled.Finish(garbled.started.at(0).lease_id, Measured(1));
  garbled.report.finished[0].malformed = "result.samples_ns: nan is not a finite number";
  garbled.Call(fleet);
  EXPECT_FALSE(answer->called);
  EXPECT_THAT(fleet.Workers().back().flagged, HasSubstr("samples_ns"));
}

TEST_F(DistrustTest, AFailureNeedsNoLatency) {
  auto answer = Submit(Item("job", 1));
  record::MeasureResult crash;
  crash.outcome = record::Outcome::kCrash;
  AnsweredBy("w", crash);
  EXPECT_TRUE(answer->called);
}

TEST_F(DistrustTest, FlaggingAWorkerRequeuesItsLeases) {
  auto first = Submit(Item("job", 1));
  auto second = Submit(Item("job", 2));
  FakeWorker worker = FakeWorker::Both("w", 2);
  worker.Call(fleet, absl::Seconds(5));
  worker.Call(fleet, absl::Seconds(5));
  fleet.Flag("w", "it lies");
  ASSERT_TRUE(worker.reply.has_value());
  EXPECT_EQ(worker.reply->refused, "it lies");
  EXPECT_THAT(worker.cancelled, SizeIs(2));
  FakeWorker other = FakeWorker::Both("other", 2);
  other.Call(fleet);
  EXPECT_THAT(other.started, SizeIs(2));
}

TEST_F(DistrustTest, AReplayedResultChangesNothing) {
  auto answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  const std::string lease = worker.started.at(0).lease_id;
  worker.Finish(lease, Measured(5));
  const WorkerReport recorded = worker.report;
  worker.Call(fleet);
  ASSERT_TRUE(answer->called);
  std::move(answer->acknowledge)();
  answer->called = false;
  for (int i = 0; i < 3; ++i) {
    fleet.Synchronize(
        recorded, [&](SynchronizeReply reply) { EXPECT_THAT(reply.durable, ElementsAre(lease)); });
  }
  EXPECT_FALSE(answer->called);
  EXPECT_GE(fleet.Counts().refused_results, 2);
}

TEST_F(DistrustTest, NameIsReservedForItsCredentials) {
  Submit(Item("job", 1));
  FakeWorker owner = FakeWorker::Both("w", 1);
  owner.report.identity = "certificate of w";
  owner.Call(fleet);
  ASSERT_THAT(owner.started, SizeIs(1));
  FakeWorker forger = FakeWorker::Both("w", 1);
  forger.report.identity = "certificate of another";
  forger.report.epoch = "forged";
  forger.report.finished.push_back({owner.started[0].lease_id, Measured(1)});
  forger.Call(fleet, absl::Seconds(5));
  ASSERT_TRUE(forger.reply.has_value()) << "refused at once";
  EXPECT_THAT(forger.reply->refused, HasSubstr("'certificate of w'"));
  EXPECT_EQ(fleet.Workers().at(0).leases, 1) << "the owner's lease is unchanged";
  owner.Restart("second");
  owner.Call(fleet);
  EXPECT_TRUE(owner.reply->refused.empty());
}

TEST_F(DistrustTest, AFlaggedWorkerIsRefusedUnderAnotherName) {
  FakeWorker liar = FakeWorker::Both("board-1", 1);
  liar.report.identity = "board-*";
  liar.report.capabilities.host = "h";
  liar.Call(fleet);
  FakeWorker twin = FakeWorker::Both("board-2", 1);
  twin.report.identity = "board-*";
  twin.report.capabilities.host = "h";
  twin.Call(fleet);
  FakeWorker other = FakeWorker::Both("board-3", 1);
  other.report.identity = "board-*";
  other.report.capabilities.host = "another";
  EXPECT_EQ(fleet.AnotherRunner("t", {"board-1"}), "") << "board-2 is the same machine";
  other.Call(fleet);
  EXPECT_EQ(fleet.AnotherRunner("t", {"board-1"}), "board-3");
  fleet.Flag("board-1", "it lies");
  EXPECT_FALSE(fleet.standings().MayWork("board-2"));
  EXPECT_TRUE(fleet.standings().MayWork("board-3"));
  twin.Call(fleet);
  ASSERT_TRUE(twin.reply.has_value());
  EXPECT_THAT(twin.reply->refused, HasSubstr("it is the worker board-1: it lies"));
  EXPECT_THAT(fleet.Drain("board-2", /*resume=*/true),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("resume board-1")));
  ASSERT_THAT(fleet.Drain("board-1", /*resume=*/true), IsOk());
  EXPECT_TRUE(fleet.standings().MayWork("board-2"));
}

TEST_F(DistrustTest, ARemovedWorkerIsNotConnectedUnderAnyName) {
  for (const char* const name : {"board-1", "board-2"}) {
    FakeWorker worker = FakeWorker::Both(name, 1);
    worker.report.identity = "board-*";
    worker.report.capabilities.host = "h";
    worker.Call(fleet);
  }
  ASSERT_THAT(fleet.Remove("board-1"), IsOk());
  EXPECT_THAT(fleet.Workers(), ::testing::IsEmpty());
  EXPECT_THAT(fleet.Remove("away"), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(fleet.Remove("away", /*remembered=*/"desk"), IsOk());
  EXPECT_EQ(fleet.standings().Own("away").identity, "desk");
}

TEST_F(DistrustTest, ReplacedEpochIsRejected) {
  Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  const WorkerReport delayed = worker.report;
  worker.Call(fleet);
  worker.Restart("second");
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(1));
  bool answered = false;
  fleet.Synchronize(delayed, [&](SynchronizeReply reply) {
    answered = true;
    EXPECT_THAT(reply.refused, HasSubstr("another process"));
    EXPECT_THAT(reply.start, IsEmpty());
  });
  EXPECT_TRUE(answered);
  EXPECT_EQ(fleet.Workers().at(0).leases, 1) << "the new process keeps its lease";
}

TEST_F(DistrustTest, AnIdleWorkerKeepsItsName) {
  FakeWorker first = FakeWorker::Both("w", 1);
  first.Call(fleet, absl::Seconds(10));
  FakeWorker second = FakeWorker::Both("w", 1);
  second.report.epoch = "second";
  second.report.capabilities.host = "laptop";
  for (int i = 0; i < 3; ++i) {
    second.Call(fleet, absl::Seconds(10));
    ASSERT_TRUE(second.reply.has_value()) << "refused at once";
    EXPECT_THAT(second.reply->refused, HasSubstr("another process on host is registered as w"));
    EXPECT_LE(second.reply->next_call, absl::Seconds(5)) << "it asks again soon";
  }
  EXPECT_FALSE(first.reply.has_value()) << "the call of the first process is still held";
  EXPECT_THAT(fleet.Workers().at(0).last_error, HasSubstr("another process, on laptop"));
  EXPECT_THAT(rivals, ElementsAre("w")) << "reported once";
  Pass(FleetOptions().rival_limit());
  EXPECT_EQ(fleet.Workers().at(0).last_error, "") << "the second process has ended";
}

TEST_F(DistrustTest, ABusyWorkerGetsItsNameBack) {
  FakeWorker first = FakeWorker::Both("w", 1);
  first.Call(fleet);
  FakeWorker second = FakeWorker::Both("w", 1);
  second.report.epoch = "second";
  second.Call(fleet, absl::Seconds(10));
  EXPECT_FALSE(second.reply.has_value()) << "it could be a restart of the worker";
  first.Call(fleet);
  EXPECT_THAT(first.reply->refused, HasSubstr("another process"));
  EXPECT_LE(first.reply->next_call, absl::Seconds(1));
  Submit(Item("job", 1));
  first.Call(fleet);
  EXPECT_EQ(first.reply->refused, "");
  EXPECT_THAT(rivals, ElementsAre("w"));
  second.Call(fleet);
  EXPECT_THAT(second.reply->refused, HasSubstr("another process"));
  first.Call(fleet);
  EXPECT_THAT(first.started, SizeIs(1));
}

TEST_F(DistrustTest, NameIsFreeAfterTheFirstProcessShutsDown) {
  FakeWorker first = FakeWorker::Both("w", 1);
  first.Call(fleet, absl::Seconds(10));
  FakeWorker second = FakeWorker::Both("w", 1);
  second.report.epoch = "second";
  second.Call(fleet);
  EXPECT_NE(second.reply->refused, "");
  first.report.draining = true;
  first.Call(fleet);
  Submit(Item("job", 1));
  second.Call(fleet);
  EXPECT_EQ(second.reply->refused, "");
  EXPECT_THAT(second.started, SizeIs(1));
}

TEST_F(DistrustTest, NameIsFreeSoonAfterTheFirstProcessIsKilled) {
  FakeWorker first = FakeWorker::Both("w", 1);
  const uint64_t call = first.Call(fleet, absl::Seconds(10));
  FakeWorker second = FakeWorker::Both("w", 1);
  second.report.epoch = "second";
  second.Call(fleet);
  EXPECT_NE(second.reply->refused, "");
  fleet.Abandon(call);  // its connection broke
  Pass(FleetOptions().name_limit() / 2);
  second.Call(fleet);
  EXPECT_NE(second.reply->refused, "") << "the first process may connect again";
  Submit(Item("job", 1));
  Pass(FleetOptions().name_limit() / 2);
  second.Call(fleet);
  EXPECT_EQ(second.reply->refused, "");
  EXPECT_THAT(second.started, SizeIs(1));
}

TEST_F(DistrustTest, SpotCheckRunsOnAnotherWorkerOnly) {
  FakeWorker claimant = FakeWorker::Both("claimant", 1);
  claimant.Call(fleet);
  EXPECT_EQ(fleet.AnotherRunner("t", {"claimant"}), "");
  FakeWorker other = FakeWorker::Both("other", 1);
  other.Call(fleet);
  EXPECT_EQ(fleet.AnotherRunner("t", {"claimant"}), "other");
  EXPECT_EQ(fleet.AnotherRunner("u", {}), "");
  WorkItem item = Item("job", 1);
  item.avoid = {"claimant"};
  Submit(std::move(item));
  claimant.Call(fleet);
  EXPECT_THAT(claimant.started, IsEmpty());
  other.Call(fleet);
  EXPECT_THAT(other.started, SizeIs(1));
  fleet.Flag("other", "it lies");
  EXPECT_EQ(fleet.AnotherRunner("t", {"claimant"}), "");
}

}  // namespace
}  // namespace hone::fleet
