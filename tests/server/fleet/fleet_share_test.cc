// Owners, priorities, quotas and back-pressure.

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fleet/fleet_harness.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class ShareTest : public ::testing::Test, protected Harness {
 protected:
  ShareTest() : Harness({.max_items_per_owner = 10, .max_items = 15}) {}
  WorkItem Of(const std::string& owner, const std::string& job, int64_t candidate) {
    WorkItem item = Item(job, candidate);
    item.owner = owner;
    return item;
  }
};

TEST_F(ShareTest, ManyJobsOfOneUserDoNotDelayAnother) {
  for (int i = 0; i < 9; ++i) Submit(Of("ann", "a" + std::to_string(i), i));
  for (int i = 0; i < 3; ++i) Submit(Of("bob", "b", i));
  FakeWorker worker = FakeWorker::Both("w", 6);
  worker.Call(fleet);
  int bobs = 0;
  for (const LeaseGrant& lease : worker.started) bobs += lease.work->job_id == "b" ? 1 : 0;
  EXPECT_EQ(bobs, 3);
}

TEST_F(ShareTest, LowPriorityJobIsNotStarved) {
  for (int i = 0; i < 5; ++i) {
    WorkItem low = Of("ci", "low", i);
    low.priority = kLowPriority;
    Submit(std::move(low));
  }
  FakeWorker worker = FakeWorker::Both("w", 1);
  std::map<std::string, int> granted;
  int64_t next = 100;
  for (int round = 0; round < 40; ++round) {
    WorkItem high = Of("ann", "high", next++);
    high.priority = kHighPriority;
    Submit(std::move(high));
    worker.Call(fleet);
    const LeaseGrant lease = worker.started.back();
    ++granted[lease.work->job_id];
    worker.Finish(lease.lease_id, Measured(1));
  }
  EXPECT_GE(granted["low"], 2);
  EXPECT_GE(granted["high"], 30);
}

TEST_F(ShareTest, FullQueueReportsItsLimitAndRecovers) {
  std::vector<std::shared_ptr<Answer>> accepted;
  for (int i = 0; i < 10; ++i) accepted.push_back(Submit(Of("ann", "a", i)));
  auto over = Submit(Of("ann", "a", 10));
  ASSERT_TRUE(over->called);
  EXPECT_THAT(over->result.status(),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       ::testing::AllOf(HasSubstr("10 candidates"), HasSubstr("'ann'"))));
  for (const auto& answer : accepted) EXPECT_FALSE(answer->called);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(Submit(Of("bob", "b", i))->called);
  auto all = Submit(Of("eve", "e", 0));
  ASSERT_TRUE(all->called) << "the bound of the whole server";
  EXPECT_THAT(std::string(all->result.status().message()), HasSubstr("15 candidates"));

  FakeWorker worker = FakeWorker::Both("w", 1);
  worker.Call(fleet);
  worker.Finish(worker.started.at(0).lease_id, Measured(1));
  worker.Call(fleet);
  EXPECT_FALSE(Submit(Of("eve", "e", 1))->called);
}

TEST_F(ShareTest, CancellingFreesQueueSpace) {
  for (int i = 0; i < 10; ++i) Submit(Of("ann", "a", i));
  fleet.CancelJob("a");
  EXPECT_FALSE(Submit(Of("ann", "b", 1))->called);
  EXPECT_EQ(fleet.Counts().items_waiting, 1);
}

TEST(WorkerBoundTest, TheNumberOfWorkersIsLimited) {
  Harness harness({.max_workers = 2});
  for (const char* id : {"a", "b", "c"}) {
    FakeWorker worker = FakeWorker::Both(id, 1);
    worker.Call(harness.fleet, absl::Seconds(5));
    EXPECT_EQ(worker.reply.has_value(), id == std::string("c"));
    if (worker.reply) {
      EXPECT_THAT(worker.reply->refused, HasSubstr("2 workers"));
      EXPECT_GT(worker.reply->next_call, absl::Seconds(5));
    }
  }
  EXPECT_THAT(harness.fleet.Workers(), SizeIs(2));
}

}  // namespace
}  // namespace hone::fleet
