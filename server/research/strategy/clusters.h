#ifndef HONE_SERVER_RESEARCH_STRATEGY_CLUSTERS_H_
#define HONE_SERVER_RESEARCH_STRATEGY_CLUSTERS_H_

#include <vector>

#include "absl/types/span.h"
#include "common/base/rng.h"

namespace hone::search {

// The result of k-means.
struct Clusters {
  std::vector<std::vector<double>> centers;
  std::vector<int> members;  // for each point, the number of its center
  double loss = 0;           // sum of the squared distances of the points to their centers
};

// Divides points into at most `k` clusters by Lloyd's iterations from centers that are drawn as in
// k-means++ (Arthur and Vassilvitskii, SODA 2007). REQUIRES: there is a point, all points have the
// same length, and k ≥ 1.
Clusters KMeans(absl::Span<const std::vector<double>> points, int k, Rng& rng);

// Returns the position of the knee of a falling curve: the point that is farthest below the line
// from the first to the last point, both axes scaled to [0, 1]. The first one if none is below it.
// REQUIRES: both have the same length, which is at least 1.
int KneeOf(absl::Span<const double> x, absl::Span<const double> y);

// Clusters the points with k from `least` to `most` in steps of `step`, and returns the clusters at
// the knee of their losses (Chameleon's adaptive sampling; Ahn et al., ICLR 2020).
Clusters ClustersAtKnee(absl::Span<const std::vector<double>> points, int least, int most, int step,
                        Rng& rng);

}  // namespace hone::search

#endif  // HONE_SERVER_RESEARCH_STRATEGY_CLUSTERS_H_
