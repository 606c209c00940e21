#include "server/research/strategy/clusters.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "server/tuner/search/random_draw.h"

namespace hone::search {
namespace {

// Points around `groups` centers that are 10 apart from each other.
std::vector<std::vector<double>> PointsAround(int groups, int each) {
  std::vector<std::vector<double>> points;
  Rng rng(5);
  for (int g = 0; g < groups; ++g) {
    for (int i = 0; i < each; ++i) {
      points.push_back({10.0 * g + 0.3 * StandardNormal(rng), 0.3 * StandardNormal(rng)});
    }
  }
  return points;
}

TEST(KMeansTest, FindsSeparateGroups) {
  const auto points = PointsAround(4, 25);
  Rng rng(1);
  const Clusters clusters = KMeans(points, 4, rng);
  ASSERT_EQ(clusters.centers.size(), 4u);
  std::set<int> used;
  for (int g = 0; g < 4; ++g) {
    used.insert(clusters.members[25 * g]);
    for (int i = 1; i < 25; ++i) EXPECT_EQ(clusters.members[25 * g + i], clusters.members[25 * g]);
  }
  EXPECT_EQ(used.size(), 4u);
  EXPECT_LT(clusters.loss, 100 * 2 * 0.3 * 0.3 * 2);
}

TEST(KMeansTest, HasNoMoreClustersThanDifferentPoints) {
  const std::vector<std::vector<double>> points = {{1}, {1}, {2}, {2}, {2}};
  Rng rng(1);
  const Clusters clusters = KMeans(points, 8, rng);
  EXPECT_EQ(clusters.centers.size(), 2u);
  EXPECT_EQ(clusters.loss, 0);
}

TEST(KneeTest, IsTheFarthestPointBelowTheChord) {
  EXPECT_EQ(KneeOf({1, 2, 3, 4, 5}, {100, 20, 15, 12, 10}), 1);
  EXPECT_EQ(KneeOf({1, 2, 3}, {3, 2, 1}), 0) << "a line has no knee";
  EXPECT_EQ(KneeOf({8}, {5}), 0);
}

TEST(ClustersAtKneeTest, TakesAsManyClustersAsThereAreGroups) {
  Rng rng(3);
  EXPECT_EQ(ClustersAtKnee(PointsAround(16, 20), 8, 64, 8, rng).centers.size(), 16u);
}

}  // namespace
}  // namespace hone::search
