#include "server/fleet/lease_book.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status.h"

namespace hone::fleet {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class LeaseBookTest : public ::testing::Test {
 protected:
  void Add(const std::string& owner = "ann") {
    book_.queue().Add({.job_id = "job", .owner = owner, .target_key = "t"}, nullptr);
  }
  const Lease* Grant(const std::string& worker) {
    return book_.Grant(
        worker, now_, [](const Lane&) { return true; }, [](const TrackedItem&) { return true; },
        [](const Lane&) { return true; });
  }

  absl::Time now_ = absl::UnixEpoch();
  const FleetOptions options_{.max_items_per_owner = 2, .max_items = 3, .instance = "test"};
  LeaseBook book_{&options_};
};

TEST_F(LeaseBookTest, ALeaseIsFoundByItsIdAndItsWorkerUntilItEnds) {
  Add();
  const Lease* lease = Grant("w");
  ASSERT_NE(lease, nullptr);
  const std::string id = lease->id;
  EXPECT_EQ(id, "test-1");
  EXPECT_TRUE(lease->build && lease->run);
  EXPECT_THAT(book_.Of("w"), ElementsAre(id));
  EXPECT_EQ(Grant("w"), nullptr) << "the queue is empty";
  EXPECT_FALSE(book_.End(id, {.why = "silent"}).has_value());
  EXPECT_EQ(book_.Find(id), nullptr);
  EXPECT_THAT(book_.Of("w"), IsEmpty());
  EXPECT_EQ(book_.queue().waiting(), 1);
  EXPECT_THAT(book_.queue().TakeFresh(), SizeIs(1));
}

TEST_F(LeaseBookTest, ItemFailsAfterMaxAttempts) {
  Add();
  for (int attempt = 1; attempt < options_.max_attempts; ++attempt) {
    EXPECT_FALSE(book_.End(Grant("w")->id, {.why = "silent"}).has_value()) << attempt;
    EXPECT_FALSE(book_.End(Grant("w")->id, {.counts = false}).has_value()) << attempt;
  }
  const auto given_up = book_.End(Grant("w")->id, {.why = "silent again"});
  ASSERT_TRUE(given_up.has_value());
  EXPECT_THAT(given_up->why, HasSubstr("silent again"));
  EXPECT_EQ(book_.queue().items(), 0);
  EXPECT_EQ(book_.counts().granted, 2 * options_.max_attempts - 1);
}

TEST_F(LeaseBookTest, ItemRunningAloneIsBlamedForALostWorker) {
  Add();
  for (int i = 0; i < 2; ++i) {
    const Lease* lease = Grant("w");
    book_.Find(lease->id)->phase = LeasePhase::kRunning;
    EXPECT_EQ(lease->alone, i > 0) << "a suspect is retried alone";
    EXPECT_THAT(book_.EndAllOf("w", "lost"), SizeIs(i));
  }
  EXPECT_EQ(book_.counts().poisoned, 1);
}

TEST_F(LeaseBookTest, AfterABuildTheItemWaitsForItsRun) {
  Add();
  const Lease build = *Grant("builder");
  book_.EndBuild(build, {.artifact_digest = "digest"}, {});
  EXPECT_TRUE(book_.queue().HasWaiting({.target_key = "t", .build = false}));
  const Lease* run = Grant("runner");
  EXPECT_TRUE(run->run && !run->build);
  EXPECT_EQ(book_.ItemOf(*run).builder_id, "builder");
}

TEST_F(LeaseBookTest, ALeaseIsReportedAsOverdueOnce) {
  Add();
  const std::string id = Grant("w")->id;
  EXPECT_THAT(book_.Overdue(now_), IsEmpty());
  EXPECT_THAT(book_.Overdue(now_ + options_.lease_limit), ElementsAre(id));
  EXPECT_THAT(book_.Overdue(now_ + options_.lease_limit), IsEmpty());
}

TEST_F(LeaseBookTest, TheNumberOfItemsIsLimited) {
  Add();
  Add();
  EXPECT_THAT(std::string(book_.CheckRoom("ann").message()), HasSubstr("2 candidates of 'ann'"));
  EXPECT_THAT(book_.CheckRoom("bob"), IsOk());
  Add("bob");
  EXPECT_THAT(std::string(book_.CheckRoom("eve").message()), HasSubstr("3 candidates"));
}

}  // namespace
}  // namespace hone::fleet
