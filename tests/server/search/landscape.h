#ifndef HONE_TESTS_SERVER_SEARCH_LANDSCAPE_H_
#define HONE_TESTS_SERVER_SEARCH_LANDSCAPE_H_

#include <string>
#include <vector>

#include "server/search/search_strategy.h"
#include "tests/server/search/spaces.h"

namespace hone::search {

// A device whose latency is a smooth function of the decisions alone, so that neither draft nor
// model is of use: e^0.4 for every log2 by which they are away from an optimum of their design
// space (all numbers together by Euclid), times e^0.3 per design space; the last is the best.
class Landscape {
 public:
  // The optima are draws of `seed`.
  Landscape(const TestSpaces* spaces, uint64_t seed);
  double LatencyOf(const record::Candidate& candidate) const;
  // That of the best space's optimum.
  double best_ns() const { return 1e6; }

 private:
  const TestSpaces* const spaces_;
  std::vector<std::vector<int64_t>> optima_;
};

// The best latency over the optimum's after each of `rounds` of `batch` told to a strategy.
std::vector<double> Regret(SearchStrategy& strategy, const Landscape& landscape, int rounds,
                           int batch);
// The last of it, in geometric mean over the seeds 1 to `seeds`; `candidates` trials in batches of
// 16 on matmul spaces.
double MeanRegret(const std::string& strategy, int candidates, int seeds);

}  // namespace hone::search

#endif  // HONE_TESTS_SERVER_SEARCH_LANDSCAPE_H_
