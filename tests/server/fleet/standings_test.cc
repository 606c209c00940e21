#include "gtest/gtest.h"
#include "server/fleet/worker_registry.h"

namespace hone::fleet {
namespace {

const Standing kDrained{.worker_id = "w", .drained = true};

TEST(StandingsTest, UnknownWorkerMayWork) {
  Standings standings;
  EXPECT_TRUE(standings.MayWork("w"));
  EXPECT_EQ(standings.Of("w"), Standing{.worker_id = "w"});
  EXPECT_FALSE(standings.Unstored("w").has_value());
}

TEST(StandingsTest, ChangeIsPendingUntilStored) {
  Standings standings;
  standings.Change(kDrained);
  EXPECT_TRUE(standings.IsDrained("w"));
  EXPECT_FALSE(standings.MayWork("w"));
  const auto first = standings.Unstored("w");
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->standing, kDrained);

  standings.Change({.worker_id = "w", .drained = true, .refused = "it lies"});
  EXPECT_EQ(standings.refused_count(), 1);
  standings.MarkStored(*first);
  const auto both = standings.Unstored("w");
  ASSERT_TRUE(both.has_value()) << "a newer change is not stored yet";
  EXPECT_TRUE(both->standing.drained);
  EXPECT_EQ(both->standing.refused, "it lies");
  standings.MarkStored(*both);
  EXPECT_FALSE(standings.Unstored("w").has_value());
}

TEST(StandingsTest, TheStoredStandingsAreKnownAndStored) {
  Standings standings;
  standings.Adopt({kDrained, {.worker_id = "r", .refused = "go", .removed = true}});
  EXPECT_TRUE(standings.IsDrained("w"));
  EXPECT_TRUE(standings.Of("r").removed);
  EXPECT_FALSE(standings.Unstored("w").has_value());
}

}  // namespace
}  // namespace hone::fleet
