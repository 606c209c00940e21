#ifndef HONE_TESTS_SERVER_TUNER_SEARCH_LANDSCAPE_H_
#define HONE_TESTS_SERVER_TUNER_SEARCH_LANDSCAPE_H_

#include <string>
#include <vector>

#include "server/tuner/search/search_strategy.h"
#include "tests/server/tuner/search/spaces.h"

namespace hone::search {

// A simulated device on which the latency is a smooth function of the decisions. The draft does not
// predict it. The latency is e^(0.4 d), where d is the Euclidean distance of the log2 decisions
// from an optimum of their design space, times e^0.3 for each design space after this one. The last
// design space is the best.
class Landscape {
 public:
  // The optima are drawn from `seed`.
  Landscape(const TestSpaces* spaces, uint64_t seed);
  double LatencyOf(const record::Candidate& candidate) const;
  // The latency at the optimum of the best space.
  double best_ns() const { return 1e6; }

 private:
  const TestSpaces* const spaces_;
  std::vector<std::vector<int64_t>> optima_;
};

// Runs `rounds` rounds of `batch` proposals. Returns the best latency so far, relative to the
// optimum, after each round.
std::vector<double> Regret(SearchStrategy& strategy, const Landscape& landscape, int rounds,
                           int batch);
// The final regret as the geometric mean over the seeds 1 to `seeds`, for `candidates` trials in
// batches of 16 on matmul spaces.
double MeanRegret(const std::string& strategy, int candidates, int seeds);

}  // namespace hone::search

#endif  // HONE_TESTS_SERVER_TUNER_SEARCH_LANDSCAPE_H_
