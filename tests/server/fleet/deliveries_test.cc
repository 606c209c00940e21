#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/fleet/fleet_parts.h"
#include "tests/fakes/fake_clock.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

class DeliveriesTest : public ::testing::Test {
 protected:
  DeliveriesTest() { worker_.capabilities = {.target_key = "t", .can_build = true}; }
  // Leases a new item to the worker to build and, unless `run` is false, to run.
  std::string Grant(bool run = true) {
    book_.queue().Add({.job_id = "job", .target_key = "t"},
                      [this](absl::StatusOr<WorkResult> result, Acknowledge acknowledge) {
                        results_.push_back(std::move(result));
                        acknowledge_ = std::move(acknowledge);
                      });
    const auto any = [](const auto&) { return true; };
    return book_.Grant("w", absl::UnixEpoch(), any, any, [run](const Lane&) { return run; })->id;
  }
  std::string Finish(const std::string& lease_id, const record::MeasureResult& result) {
    FinishedLease finished{.lease_id = lease_id, .result = result};
    const std::string why = deliveries_.Take(worker_, finished);
    for (auto& call : deferred_.Take()) std::move(call)();
    return why;
  }

  const FleetOptions options_{.instance = "test"};
  ArtifactCache artifacts_;
  Standings standings_;
  WorkerRegistry registry_{&standings_};
  Worker& worker_ = registry_.Add("w");
  LeaseBook book_{&options_};
  DeferredCalls deferred_;
  std::vector<std::pair<std::string, bool>> ended_;  // commits
  FakeClock clock_;
  Deliveries deliveries_{{clock_, options_, artifacts_, standings_, registry_, book_, deferred_},
                         [this](const std::string& lease_id, bool durable) {
                           ended_.emplace_back(lease_id, durable);
                         }};
  std::vector<absl::StatusOr<WorkResult>> results_;
  Acknowledge acknowledge_;
};

TEST_F(DeliveriesTest, ResultIsDurableWhenTheJobAcknowledges) {
  const std::string lease = Grant();
  EXPECT_EQ(Finish(lease, {.latency_ns = 100}), "");
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_EQ(results_[0]->worker_id, "w");
  EXPECT_EQ(deliveries_.results(), 1);
  EXPECT_EQ(Finish(lease, {.latency_ns = 100}), "")
      << "reported again while the commit is under way";
  EXPECT_THAT(worker_.news.durable, IsEmpty());
  std::move(acknowledge_)();
  EXPECT_THAT(ended_, ElementsAre(Pair(lease, true)));
  EXPECT_EQ(deliveries_.EndCommit(lease, true), &worker_);
  EXPECT_THAT(worker_.news.durable, ElementsAre(lease));
  EXPECT_THAT(worker_.news.stored, ElementsAre(lease));
  EXPECT_EQ(deliveries_.EndCommit(lease, true), nullptr) << "the commit ends only once";
}

TEST_F(DeliveriesTest, DroppedResultIsNotDurable) {
  const std::string lease = Grant();
  Finish(lease, {.latency_ns = 100});
  acknowledge_ = nullptr;
  EXPECT_THAT(ended_, ElementsAre(Pair(lease, false)));
  EXPECT_EQ(deliveries_.EndCommit(lease, false), &worker_);
  EXPECT_THAT(worker_.news.durable, IsEmpty());
}

TEST_F(DeliveriesTest, ResultOfAnUnknownLeaseIsDropped) {
  Finish("of another server", {.latency_ns = 100});
  EXPECT_THAT(worker_.news.durable, ElementsAre("of another server"));
  EXPECT_THAT(worker_.news.stored, IsEmpty()) << "this server does not know whether it is stored";
  EXPECT_EQ(deliveries_.refused(), 1);
  EXPECT_THAT(results_, IsEmpty());
}

TEST_F(DeliveriesTest, ImpossibleResultIsRejectedWithAReason) {
  EXPECT_THAT(Finish(Grant(), {.latency_ns = -1}), HasSubstr("reported an impossible result"));
  EXPECT_EQ(deliveries_.refused(), 1);
  EXPECT_EQ(book_.queue().waiting(), 1) << "the item is queued again";
  EXPECT_THAT(results_, IsEmpty());
}

TEST_F(DeliveriesTest, BuildWithoutItsArtifactIsRepeated) {
  Finish(Grant(/*run=*/false), {.artifact_digest = "nowhere"});
  EXPECT_TRUE(book_.queue().HasWaiting({.target_key = "t", .build = true}));
  EXPECT_EQ(book_.counts().requeued, 1);
}

TEST_F(DeliveriesTest, TakeBackDoesNotCountAsAnAttempt) {
  const std::string lease = Grant();
  deliveries_.TakeBack(lease);
  EXPECT_THAT(worker_.news.cancel, ElementsAre(lease));
  EXPECT_EQ(book_.queue().waiting(), 1);
  EXPECT_EQ(book_.queue().Find(1)->attempts, 0);
}

TEST_F(DeliveriesTest, AnItemFailsWithTheReason) {
  Grant();
  deliveries_.Fail(1, absl::CancelledError("stop"));
  for (auto& call : deferred_.Take()) std::move(call)();
  ASSERT_EQ(results_.size(), 1u);
  EXPECT_THAT(results_[0].status(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(book_.queue().items(), 0);
}

}  // namespace
}  // namespace hone::fleet
