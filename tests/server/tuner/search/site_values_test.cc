#include "server/tuner/search/site_values.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/server/tuner/search/spaces.h"

namespace hone::search {
namespace {

using schedule::Site;

TEST(SiteValuesTest, ListsExactlyTheLegalValuesInOrder) {
  const Site sites[] = {
      {.kind = Site::Kind::kPerfectTile, .count = 3, .extent = 12, .max_inner = 4},
      {.kind = Site::Kind::kTile, .count = 2, .extent = 7, .max_inner = 0},
      {.kind = Site::Kind::kChoice, .count = 2, .rows = {4, 1, 1, 1, 6, 2}}};
  const size_t counts[] = {15, 7, 3};
  SiteValues lists;
  for (int s = 0; s < 3; ++s) {
    const Site& site = sites[s];
    EXPECT_EQ(lists.Count(site), counts[s]);
    std::set<std::vector<int64_t>> seen;
    for (size_t i = 0; i < lists.Count(site); ++i) {
      const absl::Span<const int64_t> values = lists.At(site, i);
      EXPECT_TRUE(site.IsLegal(values));
      EXPECT_EQ(lists.IndexOf(site, values), i);
      seen.emplace(values.begin(), values.end());
    }
    EXPECT_EQ(seen.size(), lists.Count(site));
    for (uint64_t draw = 0; draw < 100; ++draw) {
      Rng rng(draw);
      std::vector<int64_t> values(site.count);
      site.Sample(rng, absl::MakeSpan(values));
      EXPECT_TRUE(seen.contains(values));
    }
  }
}

TEST(SiteValuesTest, ALongLoopIsListedInEvenTiles) {
  const Site site = {.kind = Site::Kind::kTile, .count = 2, .extent = 100000, .max_inner = 0};
  SiteValues lists;
  EXPECT_LT(lists.Count(site), 1000u);
  for (size_t i = 0; i < lists.Count(site); ++i) EXPECT_TRUE(site.IsLegal(lists.At(site, i)));
}

TEST(SiteValuesTest, HopsAreLegalDistinctAndChangeOneSite) {
  const TestSpaces spaces = MatmulSpaces(96);
  for (const auto& space : spaces.spaces()) {
    Rng rng(11);
    const std::vector<int64_t> from = *space->Sample(rng);
    const std::vector<Site> sites = *space->Sites(from);
    for (const int step : {1, 2}) {
      std::set<std::vector<int64_t>> seen = {from};
      for (const std::vector<int64_t>& hop : Hops(*space, from, step)) {
        EXPECT_TRUE(space->IsLegal(hop));
        EXPECT_TRUE(seen.insert(hop).second);
        int moved = 0;
        for (const Site& site : sites) {
          moved += !std::equal(hop.begin() + site.begin, hop.begin() + site.begin + site.count,
                               from.begin() + site.begin);
        }
        EXPECT_EQ(moved, 1);
      }
      if (!sites.empty()) {
        EXPECT_GT(seen.size(), 4u);
      }
    }
  }
  EXPECT_TRUE(Hops(*spaces.spaces()[1], {}, 1).empty());
}

}  // namespace
}  // namespace hone::search
