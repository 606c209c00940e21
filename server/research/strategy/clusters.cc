#include "server/research/strategy/clusters.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "server/tuner/search/random_draw.h"

namespace hone::search {
namespace {

constexpr int kLloydSteps = 20;

double SquaredDistance(absl::Span<const double> a, absl::Span<const double> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

// Sets each point's center and the loss. Returns true if a point has another center than before.
bool Assign(absl::Span<const std::vector<double>> points, Clusters& clusters) {
  bool changed = false;
  clusters.loss = 0;
  clusters.members.resize(points.size(), -1);
  for (size_t p = 0; p < points.size(); ++p) {
    double least = std::numeric_limits<double>::infinity();
    int nearest = 0;
    for (size_t c = 0; c < clusters.centers.size(); ++c) {
      const double distance = SquaredDistance(points[p], clusters.centers[c]);
      if (distance >= least) continue;
      least = distance;
      nearest = static_cast<int>(c);
    }
    changed |= clusters.members[p] != nearest;
    clusters.members[p] = nearest;
    clusters.loss += least;
  }
  return changed;
}

// Moves each center to the mean of its points. A center without points stays.
void MoveCenters(absl::Span<const std::vector<double>> points, Clusters& clusters) {
  const size_t size = points[0].size();
  std::vector<std::vector<double>> sums(clusters.centers.size(), std::vector<double>(size, 0));
  std::vector<int> counts(clusters.centers.size(), 0);
  for (size_t p = 0; p < points.size(); ++p) {
    const int center = clusters.members[p];
    ++counts[center];
    for (size_t i = 0; i < size; ++i) sums[center][i] += points[p][i];
  }
  for (size_t c = 0; c < sums.size(); ++c) {
    if (counts[c] == 0) continue;
    for (double& sum : sums[c]) sum /= counts[c];
    clusters.centers[c] = std::move(sums[c]);
  }
}

}  // namespace

Clusters KMeans(absl::Span<const std::vector<double>> points, int k, Rng& rng) {
  Clusters clusters;
  clusters.centers.push_back(points[rng.Below(points.size())]);
  std::vector<double> distances(points.size(), std::numeric_limits<double>::infinity());
  while (static_cast<int>(clusters.centers.size()) < k) {
    double farthest = 0;
    for (size_t p = 0; p < points.size(); ++p) {
      distances[p] = std::min(distances[p], SquaredDistance(points[p], clusters.centers.back()));
      farthest = std::max(farthest, distances[p]);
    }
    if (farthest == 0) break;  // fewer different points than clusters
    clusters.centers.push_back(points[Roulette(distances).Spin(rng)]);
  }
  Assign(points, clusters);
  for (int step = 0; step < kLloydSteps; ++step) {
    MoveCenters(points, clusters);
    if (!Assign(points, clusters)) break;
  }
  return clusters;
}

int KneeOf(absl::Span<const double> x, absl::Span<const double> y) {
  const double width = x.back() - x.front(), height = y.front() - y.back();
  int knee = 0;
  double deepest = 0;
  for (size_t i = 0; i < x.size() && width > 0 && height > 0; ++i) {
    const double along = (x[i] - x.front()) / width, down = (y.front() - y[i]) / height;
    if (down - along <= deepest) continue;
    deepest = down - along;
    knee = static_cast<int>(i);
  }
  return knee;
}

Clusters ClustersAtKnee(absl::Span<const std::vector<double>> points, int least, int most, int step,
                        Rng& rng) {
  std::vector<Clusters> all;
  std::vector<double> counts, losses;
  for (int k = least; k <= most; k += step) {
    all.push_back(KMeans(points, k, rng));
    counts.push_back(k);
    losses.push_back(all.back().loss);
    if (losses.back() == 0) break;  // more centers change nothing
  }
  return std::move(all[KneeOf(counts, losses)]);
}

}  // namespace hone::search
