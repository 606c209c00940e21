#include "client/network/graph/pass/min_cut.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/rng.h"

namespace hone::graph {
namespace {

TEST(MinCutTest, EqualsAllDivisionsTried) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed, 0);
    constexpr int kNodes = 7;
    int64_t first[kNodes], second[kNodes], between[kNodes][kNodes] = {};
    MinCut cut;
    for (int n = 0; n < kNodes; ++n) {
      ASSERT_EQ(cut.AddNode(), n);
      first[n] = static_cast<int64_t>(rng.Below(10));
      second[n] = static_cast<int64_t>(rng.Below(10));
      cut.AddCosts(n, first[n], second[n]);
    }
    for (int i = 0; i < 12; ++i) {
      const auto a = rng.Below(kNodes), b = rng.Below(kNodes);
      if (a == b) continue;
      const auto cost = static_cast<int64_t>(rng.Below(10));
      between[a][b] += cost;
      cut.AddCost(static_cast<int>(a), static_cast<int>(b), cost);
    }
    const auto cost_of = [&](uint32_t sides) {
      int64_t cost = 0;
      for (int a = 0; a < kNodes; ++a) {
        cost += ((sides >> a) & 1) != 0 ? second[a] : first[a];
        for (int b = 0; b < kNodes; ++b) {
          if (((sides >> a) & 1) == 0 && ((sides >> b) & 1) != 0) cost += between[a][b];
        }
      }
      return cost;
    };
    int64_t least = MinCut::kNever;
    for (uint32_t sides = 0; sides < 1U << kNodes; ++sides) least = std::min(least, cost_of(sides));
    const std::vector<bool> solved = cut.Solve();
    uint32_t sides = 0;
    for (int n = 0; n < kNodes; ++n) sides |= solved[n] ? 1U << n : 0;
    EXPECT_EQ(cost_of(sides), least) << "seed " << seed;
  }
}

TEST(MinCutTest, EqualCostsMeanTheFirstSide) {
  MinCut cut;
  cut.AddNode();
  cut.AddNode();
  cut.AddCosts(0, 3, 3);
  cut.AddCost(0, 1, 5);
  EXPECT_EQ(cut.Solve(), (std::vector<bool>{false, false}));
}

}  // namespace
}  // namespace hone::graph
