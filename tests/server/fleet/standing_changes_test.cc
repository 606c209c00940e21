#include "server/fleet/standing_changes.h"

#include <optional>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/fleet/fleet_parts.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

class StandingChangesTest : public FleetPartsTest {
 protected:
  StandingChangesTest()
      : FleetPartsTest(
            {.instance = "test",
             .on_standing = [this](const std::string& id) { flagged_.push_back(id); },
             .on_event = [this](const std::string& id,
                                const std::string& what) { events_.push_back(id + " " + what); }}) {
  }
  // Registers a worker that has begun the first of two leases, and holds a call of it.
  Worker& AddBusyWorker() {
    Worker& worker = registry_.Add("w");
    WorkerReport report{.epoch = "1",
                        .capabilities = {.target_key = "t", .can_build = true, .can_run = true}};
    registry_.Update(worker, report, clock_.Now());
    worker.free_build_slots = 2;
    for (int i = 0; i < 2; ++i) {
      book_.queue().Add({.job_id = "job", .target_key = "t"}, nullptr);
    }
    begun_ = "test-1";
    queued_ = "test-2";
    Call(worker);
    book_.Find(begun_)->phase = LeasePhase::kRunning;
    Call(worker);
    EXPECT_FALSE(reply_.has_value()) << "the call is held";
    return worker;
  }
  void Call(Worker& worker) {
    reply_.reset();
    calls_.Take(worker, absl::Seconds(8),
                [this](SynchronizeReply reply) { reply_ = std::move(reply); });
    RunDeferred();
  }
  void RunDeferred() {
    for (auto& call : deferred_.Take()) std::move(call)();
  }
  std::vector<std::string> Events() {
    RunDeferred();
    return std::exchange(events_, {});
  }

  std::vector<std::string> flagged_, events_;
  Deliveries deliveries_{&options_, &artifacts_, &registry_,
                         &book_,    &deferred_,  [](const std::string&, bool) {}};
  WorkerEvents events_of_workers_{&clock_, &options_, &deferred_};
  StandingChanges changes_{{.options = &options_,
                            .standings = &standings_,
                            .registry = &registry_,
                            .book = &book_,
                            .deliveries = &deliveries_,
                            .calls = &calls_,
                            .events = &events_of_workers_,
                            .list = &list_,
                            .deferred = &deferred_}};
  std::string begun_, queued_;             // the leases of the busy worker
  std::optional<SynchronizeReply> reply_;  // to the last call
};

TEST_F(StandingChangesTest, ADrainedWorkerKeepsWhatItHasBegun) {
  Worker& worker = AddBusyWorker();
  HONE_ASSERT_OK_AND_ASSIGN(const WorkerInfo drained, changes_.Drain("w", /*resume=*/false));
  EXPECT_TRUE(drained.drained);
  EXPECT_THAT(Events(), ElementsAre(StartsWith("w was drained by an administrator")));
  ASSERT_TRUE(reply_.has_value()) << "it is told at once";
  EXPECT_TRUE(reply_->drain);
  EXPECT_THAT(reply_->cancel, ElementsAre(queued_));
  EXPECT_THAT(book_.Of("w"), ElementsAre(begun_));

  Call(worker);
  ASSERT_THAT(changes_.Drain("w", /*resume=*/true), IsOk());
  EXPECT_THAT(Events(), ElementsAre(StartsWith("w was resumed by an administrator")));
  ASSERT_TRUE(reply_.has_value());
  EXPECT_FALSE(reply_->drain);
  EXPECT_THAT(changes_.Drain("nobody", /*resume=*/false), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(StandingChangesTest, ARemovedWorkerIsForgottenUntilItIsResumed) {
  AddBusyWorker();
  HONE_ASSERT_OK_AND_ASSIGN(const int requeued, changes_.Remove("w"));
  EXPECT_EQ(requeued, 2);
  EXPECT_THAT(Events(), ElementsAre(StartsWith("w was removed by an administrator")));
  ASSERT_TRUE(reply_.has_value());
  EXPECT_THAT(reply_->refused, HasSubstr("administrator"));
  EXPECT_EQ(registry_.Find("w"), nullptr);
  EXPECT_EQ(book_.queue().waiting(), 2);
  EXPECT_THAT(changes_.Remove("w"), StatusIs(absl::StatusCode::kNotFound))
      << "it is removed already";
  ASSERT_THAT(changes_.Drain("w", /*resume=*/true), IsOk()) << "although it is away";
  EXPECT_TRUE(standings_.MayWork("w"));
}

TEST_F(StandingChangesTest, AFlaggedWorkerLosesAllLeases) {
  AddBusyWorker();
  changes_.Distrust("w", "it lies");
  EXPECT_EQ(standings_.Of("w").refused, "it lies");
  EXPECT_THAT(book_.Of("w"), IsEmpty());
  EXPECT_THAT(flagged_, IsEmpty()) << "only without the lock";
  RunDeferred();
  EXPECT_THAT(flagged_, ElementsAre("w"));
  EXPECT_FALSE(reply_.has_value()) << "its call is left to the caller";
  ASSERT_THAT(changes_.Drain("w", /*resume=*/true), IsOk());
  EXPECT_TRUE(standings_.MayWork("w"));
}

}  // namespace
}  // namespace hone::fleet
