#include "worker/agent/lease_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hone::agent {
namespace {

using ::testing::ElementsAre;

class LeaseTableTest : public ::testing::Test {
 protected:
  static void AddLease(v1::SynchronizeResponse& response, const std::string& id, bool build = true,
                       bool run = true, const std::string& workload = "w") {
    v1::Lease& lease = *response.add_start();
    lease.set_lease_id(id);
    lease.set_build(build);
    lease.set_run(run);
    lease.set_workload_digest(workload);
    lease.set_workload("text of " + workload);
    lease.set_deadline_ms(1000);
  }
  void Start(const std::vector<std::string>& ids) {
    v1::SynchronizeResponse response;
    for (const std::string& id : ids) AddLease(response, id);
    table_.Apply(response, now_);
  }
  void MakeDurable(const std::string& id) {
    v1::SynchronizeResponse response;
    response.add_durable(id);
    table_.Apply(response, now_);
  }
  std::vector<std::string> Cancel(const std::string& id) {
    v1::SynchronizeResponse response;
    response.add_cancel(id);
    return table_.Apply(response, now_);
  }
  v1::SynchronizeRequest Describe(bool draining = false) {
    v1::SynchronizeRequest request;
    table_.Describe(draining, request);
    return request;
  }
  static v1::FinishedLease Finished(const HeldWork& work) {
    v1::FinishedLease finished;
    finished.set_lease_id(work.lease.lease_id());
    return finished;
  }

  void Add(const std::string& id) {
    v1::FinishedLease finished;
    finished.set_lease_id(id);
    table_.AddFinished(finished);
  }

  absl::Time now_ = absl::FromUnixSeconds(1000);
  LeaseTable table_{{.builds = 3, .runs = 2}};
};

TEST_F(LeaseTableTest, ReportsItsFreeSlots) {
  EXPECT_EQ(Describe().free_build_slots(), 3);
  EXPECT_EQ(Describe().free_run_slots(), 2);
  v1::SynchronizeResponse response;
  AddLease(response, "build");
  AddLease(response, "run", false, true);
  table_.Apply(response, now_);
  EXPECT_EQ(Describe().free_build_slots(), 2);
  EXPECT_EQ(Describe().free_run_slots(), 1);
  EXPECT_EQ(Describe(true).free_build_slots(), 0);
  EXPECT_TRUE(Describe(true).draining());
}

TEST_F(LeaseTableTest, IsStockedWhileHalfOfItsCapacityIsUsed) {
  EXPECT_FALSE(table_.IsStocked());
  Start({"a", "b"});
  EXPECT_TRUE(table_.IsStocked());
  const auto work = table_.NextToPrepare();
  EXPECT_TRUE(table_.Finish(work, Finished(*work)));
  EXPECT_FALSE(table_.IsStocked());
}

TEST_F(LeaseTableTest, ALeaseGoesThroughItsPhases) {
  Start({"a"});
  EXPECT_EQ(Describe().held(0).phase(), v1::LEASE_PHASE_QUEUED);
  const auto work = table_.NextToPrepare();
  EXPECT_EQ(Describe().held(0).phase(), v1::LEASE_PHASE_BUILDING);
  EXPECT_EQ(table_.preparing(), 1);
  EXPECT_EQ(table_.NextToPrepare(), nullptr);
  EXPECT_EQ(table_.oldest_ready(), absl::InfiniteFuture());
  table_.Prepared(work, now_);
  EXPECT_EQ(table_.preparing(), 0);
  EXPECT_EQ(table_.oldest_ready(), now_);
  EXPECT_THAT(table_.NextToRun(9), ElementsAre(work));
  table_.MarkRunning(*work);
  EXPECT_EQ(Describe().held(0).phase(), v1::LEASE_PHASE_RUNNING);
  EXPECT_TRUE(table_.Finish(work, Finished(*work)));
  EXPECT_EQ(Describe().held_size(), 0);
  EXPECT_EQ(Describe().finished(0).lease_id(), "a");
  MakeDurable("a");
  EXPECT_EQ(Describe().finished_size(), 0);
}

TEST_F(LeaseTableTest, ABatchWaitsOnlyForLeasesOfItsWorkload) {
  EXPECT_FALSE(table_.MoreToRunIsPreparing());
  v1::SynchronizeResponse response;
  AddLease(response, "a");
  AddLease(response, "b");
  AddLease(response, "c", /*build=*/true, /*run=*/true, "other");
  table_.Apply(response, now_);
  const auto first = table_.NextToPrepare();
  const auto second = table_.NextToPrepare();
  table_.Prepared(first, now_);
  EXPECT_TRUE(table_.MoreToRunIsPreparing());
  table_.Prepared(second, now_);
  EXPECT_FALSE(table_.MoreToRunIsPreparing()) << "the third lease is of another workload";
  EXPECT_EQ(table_.preparing(), 1);
}

TEST_F(LeaseTableTest, ALeaseThatFailsToBuildEndsThere) {
  Start({"a"});
  const auto work = table_.NextToPrepare();
  EXPECT_TRUE(table_.Finish(work, Finished(*work)));
  EXPECT_EQ(table_.preparing(), 0);
  EXPECT_EQ(Describe().finished_size(), 1);
  EXPECT_EQ(Describe().free_build_slots(), 3);
}

TEST_F(LeaseTableTest, ALeaseThatIsGrantedAgainIsNotStartedAgain) {
  Start({"a"});
  Start({"a"});  // held
  EXPECT_EQ(table_.held(), 1);
  const auto work = table_.NextToPrepare();
  table_.Finish(work, Finished(*work));
  Start({"a"});  // finished
  EXPECT_EQ(table_.held(), 0);
  MakeDurable("a");
  Start({"a"});  // durable; the answer that grants it was overtaken
  EXPECT_EQ(table_.held(), 0);
}

TEST_F(LeaseTableTest, ACancelledLeaseLeavesNoResult) {
  Start({"queued", "building", "ready"});
  const auto queued = table_.NextToPrepare();
  const auto building = table_.NextToPrepare();
  EXPECT_EQ(queued->lease.lease_id(), "queued");
  EXPECT_TRUE(Cancel("ready").empty());  // not prepared yet
  EXPECT_EQ(table_.held(), 2);
  EXPECT_EQ(table_.NextToPrepare(), nullptr);
  Cancel("building");
  EXPECT_EQ(table_.held(), 2);  // until its build ends
  table_.Prepared(building, now_);
  EXPECT_EQ(table_.held(), 1);
  queued->artifact_digest = "digest";
  table_.Prepared(queued, now_);
  EXPECT_THAT(Cancel("queued"), ElementsAre("digest"));
  EXPECT_EQ(table_.held(), 0);
  EXPECT_EQ(table_.preparing(), 0);
  EXPECT_TRUE(table_.workloads().empty());
  EXPECT_EQ(Describe().finished_size(), 0);
}

TEST_F(LeaseTableTest, ALeaseThatIsCancelledWhileItRunsLeavesNoResult) {
  Start({"a"});
  const auto work = table_.NextToPrepare();
  table_.Prepared(work, now_);
  table_.NextToRun(1);
  Cancel("a");
  EXPECT_FALSE(table_.Finish(work, Finished(*work)));
  EXPECT_EQ(Describe().finished_size(), 0);
}

TEST_F(LeaseTableTest, BatchHasOneWorkload) {
  v1::SynchronizeResponse response;
  for (const char* id : {"v1", "w1", "v2", "w2", "v3"}) {
    AddLease(response, id, true, true, std::string(1, id[0]));
  }
  table_.Apply(response, now_);
  EXPECT_EQ(table_.workloads().size(), 2u);
  EXPECT_EQ(table_.workloads().at("v").text, "text of v");
  while (const auto work = table_.NextToPrepare()) table_.Prepared(work, now_);
  const auto ids = [this](int max) {
    std::vector<std::string> ids;
    for (const auto& work : table_.NextToRun(max)) ids.push_back(work->lease.lease_id());
    return ids;
  };
  EXPECT_THAT(ids(2), ElementsAre("v1", "v2"));
  EXPECT_THAT(ids(9), ElementsAre("w1", "w2"));
  EXPECT_THAT(ids(9), ElementsAre("v3"));
  EXPECT_THAT(ids(9), ElementsAre());
}

TEST_F(LeaseTableTest, ResultsOfAnEarlierProcessAreHandedIn) {
  v1::FinishedLease finished;
  finished.set_lease_id("old");
  table_.AddFinished(finished);
  EXPECT_EQ(Describe().finished(0).lease_id(), "old");
  MakeDurable("old");
  EXPECT_EQ(Describe().finished_size(), 0);
}

TEST_F(LeaseTableTest, ResultIsSentInOneCallAtATime) {
  EXPECT_FALSE(table_.HasNews());
  Add("a");
  EXPECT_TRUE(table_.HasNews());
  table_.CallBegins(1, Describe());
  EXPECT_FALSE(table_.HasNews());
  EXPECT_EQ(Describe().finished_size(), 0);
  EXPECT_EQ(Describe(true).finished_size(), 1) << "the last call reports everything";
  Add("b");
  EXPECT_TRUE(table_.HasNews());
  EXPECT_EQ(Describe().finished(0).lease_id(), "b");
  table_.CallBegins(2, Describe());
  EXPECT_FALSE(table_.HasNews());
}

TEST_F(LeaseTableTest, FailedCallsResultsAreSentAgain) {
  Add("a");
  table_.CallBegins(1, Describe());
  table_.CallEnds(1, false);
  EXPECT_TRUE(table_.HasNews());
  EXPECT_EQ(Describe().finished_size(), 1);
}

TEST_F(LeaseTableTest, ResultsAreRepeatedUntilDurable) {
  Add("b");
  table_.CallBegins(1, Describe());
  table_.CallEnds(1, true);
  EXPECT_FALSE(table_.HasNews());
  Add("c");
  ASSERT_EQ(Describe().finished_size(), 2);
  EXPECT_EQ(Describe().finished(0).lease_id(), "c") << "new results come first";
  MakeDurable("b");
  EXPECT_EQ(Describe().finished_size(), 1);
}

}  // namespace
}  // namespace hone::agent
