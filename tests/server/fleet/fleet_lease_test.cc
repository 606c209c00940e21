// Leases: fencing, attempts, poisoning, deadlines, and candidates that are built and run in two
// steps.

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

class LeaseTest : public ::testing::Test, protected Harness {};

TEST_F(LeaseTest, AWorkerThatBuildsAndRunsGetsBothInOneLease) {
  auto answer = Submit(Item("job", 7));
  FakeWorker worker = FakeWorker::Both("w", 2);
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(1));
  const LeaseGrant& lease = worker.started[0];
  EXPECT_TRUE(lease.build && lease.run);
  EXPECT_THAT(lease.work->decisions, ElementsAre(7));
  EXPECT_EQ(lease.limit, FleetOptions().lease_limit);

  worker.Finish(lease.lease_id, Measured(100, "artifact"));
  worker.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->result.latency_ns, 100);
  EXPECT_EQ(answer->result->worker_id, "w");
}

TEST_F(LeaseTest, LongTracesComeInSeveralAnswers) {
  constexpr size_t kTrace = 1 << 20;
  for (int i = 0; i < 40; ++i) {
    WorkItem item = Item("job", i);
    item.space = std::string(kTrace, 'x');
    Submit(std::move(item));
  }
  FakeWorker worker = FakeWorker::Both("w", 64);
  size_t before = 0;
  do {
    before = worker.started.size();
    worker.Call(fleet);
    EXPECT_LE((worker.started.size() - before) * kTrace, 8 * kTrace);
  } while (worker.started.size() > before);
  EXPECT_THAT(worker.started, SizeIs(40));
}

TEST_F(LeaseTest, ResultIsDurableWhenTheOwnerAcknowledges) {
  auto answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  const std::string lease = worker.started.at(0).lease_id;
  worker.Finish(lease, Measured(1));
  worker.Call(fleet);
  worker.Call(fleet);  // reported again: not a second result
  EXPECT_THAT(worker.durable, IsEmpty());
  worker.Call(fleet, absl::Seconds(30));
  EXPECT_FALSE(worker.reply.has_value());
  std::move(answer->acknowledge)();
  ASSERT_TRUE(worker.reply.has_value()) << "the held call is answered";
  EXPECT_THAT(worker.durable, ElementsAre(lease));
  EXPECT_THAT(worker.reply->stored, ElementsAre(lease));
}

TEST_F(LeaseTest, DroppedResultIsRejectedPermanently) {
  auto answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  worker.Finish(worker.started.at(0).lease_id, Measured(1));
  worker.Call(fleet);
  answer->acknowledge = nullptr;
  worker.Call(fleet);
  EXPECT_THAT(worker.durable, SizeIs(1));
  EXPECT_THAT(worker.reply->stored, IsEmpty());
}

TEST_F(LeaseTest, LateResultOfAnExpiredLeaseIsRejected) {
  auto answer = Submit(Item("job", 1));
  FakeWorker slow = FakeWorker::Both("slow", 1);
  slow.Call(fleet);
  const std::string old = slow.started.at(0).lease_id;
  Pass(FleetOptions().silence_limit());  // the worker is lost and the lease is returned

  FakeWorker quick = FakeWorker::Both("quick", 1);
  quick.Call(fleet);
  ASSERT_THAT(quick.started, SizeIs(1));
  EXPECT_NE(quick.started[0].lease_id, old);

  slow.Finish(old, Measured(5));
  slow.Call(fleet);
  EXPECT_FALSE(answer->called);
  EXPECT_THAT(slow.durable, ElementsAre(old));

  quick.Finish(quick.started[0].lease_id, Measured(7));
  quick.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->result.latency_ns, 7);
}

TEST_F(LeaseTest, OneWorkerCannotAnswerForAnother) {
  auto answer = Submit(Item("job", 1));
  FakeWorker owner = FakeWorker::Both("owner", 1);
  owner.Call(fleet);
  FakeWorker thief = FakeWorker::Both("thief", 0);
  thief.report.finished.push_back({owner.started.at(0).lease_id, Measured(1)});
  thief.Call(fleet);
  EXPECT_FALSE(answer->called);
}

TEST_F(LeaseTest, ANewEpochRequeuesAtOnce) {
  Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  const std::string old = worker.started.at(0).lease_id;
  worker.Restart("second");
  worker.Call(fleet);
  ASSERT_THAT(worker.started, SizeIs(1));
  EXPECT_NE(worker.started[0].lease_id, old);
}

TEST_F(LeaseTest, NewProcessDeliversResultsOfTheOldOne) {
  auto done = Submit(Item("job", 1));
  Submit(Item("job", 2));
  FakeWorker worker = FakeWorker::Both("w", 2);
  worker.Call(fleet);
  const std::string lease = worker.started.at(0).lease_id;
  worker.Restart("second");
  worker.report.finished.push_back({lease, Measured(3)});  // from its spool
  worker.Call(fleet);
  ASSERT_TRUE(done->called);
  EXPECT_EQ(done->result->result.latency_ns, 3);
  EXPECT_THAT(worker.started, SizeIs(1)) << "only the unfinished item is granted again";
  EXPECT_THAT(worker.durable, IsEmpty());
  std::move(done->acknowledge)();
  worker.Call(fleet);
  EXPECT_THAT(worker.durable, ElementsAre(lease));
}

TEST_F(LeaseTest, ACandidateThatKillsTwoWorkersIsPoisoned) {
  auto answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  for (const char* epoch : {"second", "third"}) {
    worker.Call(fleet);
    ASSERT_THAT(worker.started, SizeIs(1));
    worker.SetPhase(worker.started[0].lease_id, LeasePhase::kRunning);
    worker.Call(fleet);
    EXPECT_FALSE(answer->called);
    worker.Restart(epoch);
  }
  worker.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->result.outcome, record::Outcome::kDeviceLost);
  EXPECT_THAT(answer->result->result.detail, HasSubstr("w, w"));
  EXPECT_THAT(worker.started, IsEmpty());
}

// A second worker was started under the same name by mistake, and was stopped again.
TEST_F(LeaseTest, NameReturnsWhenTheOtherProcessIsGone) {
  FakeWorker first = FakeWorker::Both("w", 1);
  first.Call(fleet);
  FakeWorker second = FakeWorker::Both("w", 1);
  second.Restart("second");
  second.Call(fleet);
  auto answer = Submit(Item("job", 1));
  first.Call(fleet);
  EXPECT_THAT(first.reply->refused, HasSubstr("another process"));
  EXPECT_THAT(first.started, IsEmpty());
  Pass(FleetOptions().silence_limit() + absl::Seconds(1));
  first.Call(fleet);
  EXPECT_EQ(first.reply->refused, "");
  EXPECT_THAT(first.started, SizeIs(1));
  second.Call(fleet);  // it was only slow; the one that came back last stays
  EXPECT_THAT(second.reply->refused, HasSubstr("another process"));
}

TEST_F(LeaseTest, OnlyRunningPhasePoisonsButEveryLossIsAnAttempt) {
  auto answer = Submit(Item("job", 1));
  FakeWorker worker = FakeWorker::Both("w", 1);
  for (int attempt = 1; attempt <= FleetOptions().max_attempts; ++attempt) {
    worker.Call(fleet);
    ASSERT_THAT(worker.started, SizeIs(1)) << attempt;
    worker.SetPhase(worker.started[0].lease_id, LeasePhase::kBuilding);
    worker.Call(fleet);
    EXPECT_FALSE(answer->called) << attempt;
    worker.Restart(std::to_string(attempt));
  }
  worker.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->result.outcome, record::Outcome::kDeviceLost);
}

TEST_F(LeaseTest, DrainingRequeuesLeasesWithoutAnAttempt) {
  auto answer = Submit(Item("job", 1));
  for (int i = 0; i < 2 * FleetOptions().max_attempts; ++i) {
    FakeWorker worker = FakeWorker::Both("w" + std::to_string(i), 1);
    worker.Call(fleet);
    ASSERT_THAT(worker.started, SizeIs(1));
    worker.report.draining = true;
    worker.Call(fleet);
    EXPECT_THAT(worker.cancelled, ElementsAre(worker.started[0].lease_id));
    worker.Call(fleet);
    EXPECT_THAT(worker.started, SizeIs(1)) << "a draining worker gets nothing new";
  }
  EXPECT_FALSE(answer->called);
}

TEST_F(LeaseTest, AnOverrunLeaseIsCancelledAndRequeued) {
  auto answer = Submit(Item("job", 1));
  FakeWorker stuck = FakeWorker::Both("stuck", 1);
  stuck.Call(fleet);
  for (absl::Duration t; t < FleetOptions().lease_limit; t += absl::Seconds(10)) {
    stuck.Call(fleet);
    EXPECT_THAT(stuck.cancelled, IsEmpty());
    Pass(absl::Seconds(10));
  }
  stuck.report.free_build_slots = 0;
  stuck.Call(fleet);
  EXPECT_THAT(stuck.cancelled, SizeIs(1));
  FakeWorker other = FakeWorker::Both("other", 1);
  other.Call(fleet);
  EXPECT_THAT(other.started, SizeIs(1));
  EXPECT_FALSE(answer->called);
}

TEST_F(LeaseTest, AnotherWorkerBuildsForABoard) {
  auto answer = Submit(Item("job", 1));
  FakeWorker strong = FakeWorker::Both("strong", 2);
  strong.report.capabilities.target_key = "another";
  strong.report.capabilities.build_isas = {"t"};
  FakeWorker board = FakeWorker::Both("board", 2);
  board.report.capabilities.can_build = false;
  board.report.free_build_slots = 0;

  board.Call(fleet, absl::Seconds(30));
  EXPECT_THAT(board.started, IsEmpty());
  strong.Call(fleet);
  ASSERT_THAT(strong.started, SizeIs(1));
  EXPECT_TRUE(strong.started[0].build && !strong.started[0].run);

  const std::string digest = Sha256Of("so");
  ASSERT_THAT(artifacts.Put(digest, "so"), IsOk());
  record::MeasureResult built = Measured(0, digest);
  built.facts.code_bytes = 77;
  strong.Finish(strong.started[0].lease_id, built);
  strong.Call(fleet);
  EXPECT_THAT(strong.durable, SizeIs(1));
  ASSERT_THAT(board.started, SizeIs(1)) << "the held call is answered when the build is done";
  EXPECT_TRUE(!board.started[0].build && board.started[0].run);
  EXPECT_EQ(board.started[0].artifact_digest, digest);

  board.Finish(board.started[0].lease_id, Measured(9));
  board.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->result.artifact_digest, digest);
  EXPECT_EQ(answer->result->result.facts.code_bytes, 77);
  EXPECT_EQ(answer->result->worker_id, "board");
}

TEST_F(LeaseTest, RecordNamesTheBuilderAndTheRunner) {
  FakeWorker strong = FakeWorker::Both("strong", 1);
  strong.report.capabilities.can_run = false;
  strong.report.capabilities.environment = {
      .cpu = "big", .compiler = "llvm 19.1.7", .codegen_version = 6};
  FakeWorker board = FakeWorker::Both("board", 1);
  board.report.capabilities.can_build = false;
  board.report.free_build_slots = 0;
  board.report.capabilities.environment = {.cpu = "small"};
  board.Call(fleet, absl::Seconds(30));
  const record::Environment expected{
      .cpu = "small", .compiler = "llvm 19.1.7", .codegen_version = 6};
  auto answer = Submit(Item("job", 1));
  strong.Call(fleet);
  EXPECT_EQ(fleet.Workers().at(0).capabilities.environment, expected)
      << "the listed environment is that of its next record";
  const std::string digest = Sha256Of("so");
  ASSERT_THAT(artifacts.Put(digest, "so"), IsOk());
  strong.Finish(strong.started.at(0).lease_id, Measured(0, digest));
  strong.Call(fleet);
  board.Finish(board.started.at(0).lease_id, Measured(9));
  board.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->environment, expected);

  // A confirmation runs the same bytes, perhaps on a worker with another builder.
  FakeWorker both = FakeWorker::Both("both", 1);
  both.report.capabilities.environment = {.cpu = "other", .codegen_version = 7};
  WorkItem again = Item("job", 1);
  again.artifact_digest = digest;
  again.builder = BuilderOf(answer->result->environment);
  again.worker_id = "both";
  both.Call(fleet, absl::Seconds(30));
  auto confirmed = Submit(again);
  ASSERT_THAT(both.started, SizeIs(1));
  both.Finish(both.started[0].lease_id, Measured(9));
  both.Call(fleet);
  ASSERT_TRUE(confirmed->called);
  EXPECT_EQ(confirmed->result->environment.cpu, "other");
  EXPECT_EQ(confirmed->result->environment.codegen_version, 6);
}

TEST_F(LeaseTest, FailedBuildIsReported) {
  FakeWorker board = FakeWorker::Both("board", 0);
  board.report.capabilities.can_build = false;
  board.Call(fleet);
  auto answer = Submit(Item("job", 1));
  FakeWorker strong = FakeWorker::Both("strong", 1);
  strong.report.capabilities.can_run = false;
  strong.Call(fleet);
  record::MeasureResult failed;
  failed.outcome = record::Outcome::kCompileError;
  strong.Finish(strong.started.at(0).lease_id, failed);
  strong.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->result.outcome, record::Outcome::kCompileError);
}

TEST_F(LeaseTest, MissingArtifactIsRebuiltOrReported) {
  FakeWorker board = FakeWorker::Both("board", 0);
  board.report.capabilities.can_build = false;
  board.Call(fleet);
  auto candidate = Submit(Item("job", 1));
  FakeWorker builder = FakeWorker::Both("builder", 1);
  builder.report.capabilities.can_run = false;
  builder.Call(fleet);
  builder.Finish(builder.started.at(0).lease_id, Measured(0, Sha256Of("lost")));
  builder.Call(fleet);
  fleet.Tick();
  builder.Call(fleet);
  EXPECT_THAT(builder.started, SizeIs(2)) << "built again";

  WorkItem item = Item("job", 2);
  item.artifact_digest = Sha256Of("nowhere");
  auto finalist = Submit(item);
  fleet.Tick();
  ASSERT_TRUE(finalist->called);
  EXPECT_THAT(finalist->result.status(), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(LeaseTest, PinnedItemWaitsWhileItsWorkerIsConnected) {
  FakeWorker first = FakeWorker::Both("first", 1);
  FakeWorker second = FakeWorker::Both("second", 1);
  first.Call(fleet);
  WorkItem item = Item("job", 1);
  item.worker_id = "first";
  Submit(item);
  second.Call(fleet, absl::Seconds(30));
  EXPECT_THAT(second.started, IsEmpty());
  Pass(FleetOptions().silence_limit());
  EXPECT_THAT(second.started, SizeIs(1));
}

TEST_F(LeaseTest, ItemPinnedToABoardIsBuiltElsewhere) {
  FakeWorker board = FakeWorker::Both("board", 1);
  board.report.capabilities.can_build = false;
  board.report.free_build_slots = 0;
  board.Call(fleet);
  FakeWorker strong = FakeWorker::Both("strong", 1);
  strong.Call(fleet, absl::Seconds(10));
  WorkItem item = Item("job", 1);
  item.worker_id = "board";
  auto answer = Submit(item);
  ASSERT_THAT(strong.started, SizeIs(1));
  EXPECT_TRUE(strong.started[0].build);
  EXPECT_FALSE(strong.started[0].run) << "the builder is not the board and must not time it";

  const std::string digest = Sha256Of("code");
  ASSERT_THAT(artifacts.Put(digest, "code"), IsOk());
  fleet.ArtifactArrived(digest);
  strong.Finish(strong.started[0].lease_id, Measured(0, digest));
  strong.Call(fleet);
  EXPECT_THAT(strong.started, SizeIs(1));
  board.Call(fleet);
  ASSERT_THAT(board.started, SizeIs(1));
  EXPECT_TRUE(board.started[0].run && !board.started[0].build);
  board.Finish(board.started[0].lease_id, Measured(100));
  board.Call(fleet);
  ASSERT_TRUE(answer->called);
  EXPECT_EQ(answer->result->worker_id, "board");
}

TEST_F(LeaseTest, BestLatencyIsReadWhenTheLeaseIsGranted) {
  auto best = std::make_shared<std::atomic<double>>(0);
  WorkItem item = Item("job", 1);
  item.best_latency_ns = best;
  Submit(item);
  best->store(42);
  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  EXPECT_EQ(worker.started.at(0).best_latency_ns, 42);
}

}  // namespace
}  // namespace hone::fleet
