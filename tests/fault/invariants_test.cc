// The checks must detect violations.

#include "tests/fault/invariants.h"

#include <map>

#include "common/base/digest.h"
#include "common/base/sha256.h"
#include "common/record/processes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hone/v1/worker.pb.h"
#include "tests/fakes/manual_store.h"
#include "tests/server/store/done.h"
#include "tests/status.h"

namespace hone::fault {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

record::Record Screened(int64_t id, int64_t trial, std::vector<double> samples) {
  record::Record record{.id = id, .workload_digest = "w", .target = "t", .job_id = "7"};
  record.trial = trial;
  record.candidate = {.space_digest = "s", .decisions = {trial}};
  record.result.latency_ns = samples[0];
  record.result.samples_ns = std::move(samples);
  return record;
}

v1::SynchronizeResponse Grant(const std::string& lease, int64_t trial) {
  v1::SynchronizeResponse response;
  v1::Lease& granted = *response.add_start();
  granted.set_lease_id(lease);
  granted.set_run(true);
  granted.set_job_id("7");
  granted.set_space_digest("s");
  granted.add_decisions(trial);
  granted.mutable_policy()->set_name("screen");
  return response;
}

v1::SynchronizeRequest Finish(const std::string& lease, const std::vector<double>& samples) {
  v1::SynchronizeRequest request;
  v1::FinishedLease& finished = *request.add_finished();
  finished.set_lease_id(lease);
  finished.mutable_result()->set_outcome(v1::OUTCOME_OK);
  finished.mutable_result()->set_latency_ns(samples[0]);
  for (const double sample : samples) finished.mutable_result()->add_samples_ns(sample);
  return request;
}

// The server refused the result, or does not know whether it is stored.
v1::SynchronizeResponse Durable(const std::string& lease) {
  v1::SynchronizeResponse response;
  response.add_durable(lease);
  return response;
}

v1::SynchronizeResponse Stored(const std::string& lease) {
  v1::SynchronizeResponse response = Durable(lease);
  response.add_stored(lease);
  return response;
}

TEST(InvariantsTest, AcknowledgedMeasurementIsStoredExactlyOnce) {
  Ledger ledger;
  ledger.Answered(Grant("a-1", 1));
  ledger.Told(Finish("a-1", {1.5, 2.5}));
  EXPECT_THAT(ledger.acknowledged(), IsEmpty()) << "a reported result is not acknowledged yet";
  ledger.Answered(Durable("a-1"));
  ASSERT_THAT(ledger.acknowledged(), SizeIs(1));
  const auto there = Screened(1, 1, {1.5, 2.5});
  EXPECT_THAT(CheckAcknowledged({there}, ledger.acknowledged()).violations, IsEmpty());
  EXPECT_THAT(CheckAcknowledged({}, ledger.acknowledged()).violations, SizeIs(1));
  auto again = there;
  again.id = 2;
  EXPECT_THAT(CheckAcknowledged({there, again}, ledger.acknowledged()).violations, SizeIs(1));
  EXPECT_THAT(CheckOnce({there, again}).violations, SizeIs(2))
      << "both the samples and the trial repeat";
}

// The next leader gives out another lease of the candidate, and continues the job. Neither excuses
// the loss of a result that the leader before had stored.
TEST(InvariantsTest, StoredResultMustSurviveTheNextLeader) {
  Ledger ledger;
  ledger.Answered(Grant("a-1", 1));
  ledger.Told(Finish("a-1", {1.5, 2.5}));
  ledger.Answered(Stored("a-1"));
  ledger.Answered(Grant("b-1", 1));
  ledger.Answered(Grant("b-2", 2));
  ledger.Told(Finish("a-1", {1.5, 2.5}));  // repeated to the next leader, which does not know it
  ledger.Answered(Durable("a-1"));
  const auto there = Screened(1, 1, {1.5, 2.5});
  EXPECT_THAT(CheckAcknowledged({there}, ledger.acknowledged()).violations, IsEmpty());
  EXPECT_THAT(CheckAcknowledged({Screened(1, 1, {3.5, 4.5})}, ledger.acknowledged()).violations,
              SizeIs(1));
  EXPECT_THAT(CheckAcknowledged({}, ledger.acknowledged()).violations, SizeIs(1));
}

TEST(InvariantsTest, StoredFailureHasARecord) {
  Ledger ledger;
  auto confirmed = Grant("a-1", 1);
  confirmed.mutable_start(0)->mutable_policy()->set_name("confirm");
  ledger.Answered(confirmed);
  v1::SynchronizeRequest failed = Finish("a-1", {1.5, 2.5});
  failed.mutable_finished(0)->mutable_result()->set_outcome(v1::OUTCOME_CRASH);
  failed.mutable_finished(0)->mutable_result()->clear_samples_ns();
  ledger.Told(failed);
  ledger.Answered(Stored("a-1"));
  ledger.Answered(Grant("b-1", 2));
  EXPECT_THAT(CheckAcknowledged({}, ledger.acknowledged()).violations, SizeIs(1))
      << "other finalists of the next leader do not excuse it";
}

TEST(InvariantsTest, LateResultIsMeasuredAgain) {
  Ledger ledger;
  ledger.Answered(Grant("a-1", 1));
  ledger.Answered(Grant("b-1", 1));
  ledger.Told(Finish("a-1", {1.5, 2.5}));
  ledger.Answered(Durable("a-1"));
  EXPECT_THAT(CheckAcknowledged({Screened(1, 1, {3.5, 4.5})}, ledger.acknowledged()).violations,
              IsEmpty());
  EXPECT_THAT(CheckAcknowledged({}, ledger.acknowledged()).violations, SizeIs(1));
}

// The next leader does not need another measurement of a candidate that has a record.
TEST(InvariantsTest, ResultOfAnEarlierLeaderNeedNotBeMeasuredAgain) {
  Ledger next;
  next.Answered(Grant("a-1", 1));
  next.Answered(Grant("b-1", 2));
  next.Told(Finish("a-1", {1.5, 2.5}));
  next.Answered(Durable("a-1"));
  EXPECT_THAT(CheckAcknowledged({Screened(1, 1, {3.5, 4.5})}, next.acknowledged()).violations,
              IsEmpty());
  EXPECT_THAT(CheckAcknowledged({}, next.acknowledged()).violations, SizeIs(1));
  // It may also have other finalists.
  Ledger confirming;
  auto confirmed = Grant("a-1", 1);
  confirmed.mutable_start(0)->mutable_policy()->set_name("confirm");
  confirming.Answered(confirmed);
  confirming.Told(Finish("a-1", {1.5, 2.5}));
  confirming.Answered(Durable("a-1"));
  EXPECT_THAT(CheckAcknowledged({}, confirming.acknowledged()).violations, SizeIs(1));
  confirming.Answered(Grant("b-1", 2));
  EXPECT_THAT(CheckAcknowledged({}, confirming.acknowledged()).violations, IsEmpty());
  // A leader that is cut off from its database grants a lease after the next one has done so.
  Ledger ledger;
  ledger.Answered(Grant("b-1", 1));
  ledger.Answered(Grant("a-1", 1));
  ledger.Told(Finish("a-1", {1.5, 2.5}));
  ledger.Answered(Durable("a-1"));
  EXPECT_THAT(CheckAcknowledged({Screened(1, 1, {3.5, 4.5})}, ledger.acknowledged()).violations,
              IsEmpty());
  EXPECT_THAT(CheckAcknowledged({}, ledger.acknowledged()).violations, SizeIs(1))
      << "its candidate must have a record";
  Ledger of_one;
  of_one.Answered(Grant("a-1", 1));
  of_one.Answered(Grant("a-2", 1));
  of_one.Told(Finish("a-2", {1.5, 2.5}));
  of_one.Answered(Durable("a-2"));
  EXPECT_THAT(CheckAcknowledged({Screened(1, 1, {3.5, 4.5})}, of_one.acknowledged()).violations,
              SizeIs(1));
}

TEST(InvariantsTest, RecordsShownToAClientPersist) {
  Ledger ledger;
  const auto record = Screened(1, 1, {1.5, 2.5});
  ledger.Saw({record});
  EXPECT_THAT(CheckShown({record}, ledger.shown()).violations, IsEmpty());
  EXPECT_THAT(CheckShown({}, ledger.shown()).violations, SizeIs(1));
  EXPECT_THAT(CheckShown({Screened(1, 1, {1.5, 9})}, ledger.shown()).violations, SizeIs(1));
}

TEST(InvariantsTest, RestoredBackupHoldsAcknowledgedRecords) {
  Ledger ledger;
  ledger.Answered(Grant("a-1", 1));
  ledger.Told(Finish("a-1", {1.5, 2.5}));
  ledger.Answered(Durable("a-1"));
  const auto first = Screened(1, 1, {1.5, 2.5});
  ledger.Saw({first});
  const Ledger::Promises at_backup = ledger.Copy();
  ledger.Answered(Grant("a-2", 2));
  ledger.Told(Finish("a-2", {3.5, 4.5}));
  ledger.Answered(Durable("a-2"));
  const Ledger::Restoration kept = ledger.Restored(at_backup, {first});
  EXPECT_EQ(kept.gone, 1);
  EXPECT_THAT(kept.broken, IsEmpty());
  EXPECT_THAT(ledger.acknowledged(), SizeIs(1));
  // A lease from before the restoration ends after it.
  ledger.Answered(Grant("a-3", 3));
  EXPECT_THAT(ledger.Restored(at_backup, {first}).broken, IsEmpty());
  ledger.Told(Finish("a-3", {5.5, 6.5}));
  ledger.Answered(Durable("a-3"));
  EXPECT_THAT(CheckAcknowledged({first}, ledger.acknowledged()).violations, IsEmpty());
  // One from after it is a promise again.
  ledger.Answered(Grant("a-4", 4));
  ledger.Told(Finish("a-4", {7.5, 8.5}));
  ledger.Answered(Durable("a-4"));
  EXPECT_THAT(CheckAcknowledged({first}, ledger.acknowledged()).violations, SizeIs(1));
  const Ledger::Restoration lost = ledger.Restored(at_backup, {});
  EXPECT_THAT(lost.broken, SizeIs(1));
}

record::Record Confirmed(int64_t trial, double latency_ns) {
  record::Record record{.workload_digest = "w", .target = "t", .job_id = "7", .trial = trial};
  record.policy.name = "confirm";
  record.candidate = {.space_digest = "s", .decisions = {trial}};
  record.result.latency_ns = latency_ns;
  record.result.artifact_digest = Sha256Of("kernel");
  return record;
}

// A job publishes the fastest of the candidates that enough processes measured.
TEST(InvariantsTest, BestIsTheFastestThatEnoughProcessesConfirmed) {
  store::ManualStore store;
  ASSERT_THAT(store::PutText(store, "w", "workload"), IsOk());
  ASSERT_THAT(store::PutText(store, "s", "space"), IsOk());
  ASSERT_THAT(store::PutArtifact(store, Sha256Of("kernel"), "kernel"), IsOk());
  for (int process = 0; process < record::kProcesses; ++process) {
    ASSERT_THAT(store::Append(store, Confirmed(1, 1100)), IsOk());
    ASSERT_THAT(store::Append(store, Confirmed(2, 1050)), IsOk());
  }
  record::Record combined = Confirmed(1, 1100);
  combined.result.processes = record::kProcesses;
  HONE_ASSERT_OK_AND_ASSIGN(const auto published, store::Append(store, combined));
  ASSERT_THAT(store::PublishBest(store, published.id), IsOk());
  v1::Best best;
  best.mutable_record()->set_id(published.id);
  const auto violations = [&](const std::map<std::string, v1::Best>& served) {
    const auto records = AllRecords(store);
    EXPECT_THAT(records, IsOk());
    return CheckBests(store, *records, served).violations;
  };
  EXPECT_THAT(violations({{"w", best}}), IsEmpty());
  EXPECT_THAT(violations({}), SizeIs(1)) << "the server serves another";
  ASSERT_THAT(store::Append(store, Confirmed(2, 1050)), IsOk());
  EXPECT_THAT(violations({{"w", best}}), SizeIs(1));
}

}  // namespace
}  // namespace hone::fault
