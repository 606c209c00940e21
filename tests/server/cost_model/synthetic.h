#ifndef HONE_TESTS_SERVER_COST_MODEL_SYNTHETIC_H_
#define HONE_TESTS_SERVER_COST_MODEL_SYNTHETIC_H_

#include <cstdint>
#include <vector>

#include "server/cost_model/cost_model.h"

namespace hone::cost_model {

// Candidates of a task whose throughput is known: the sum over their statements of a nonlinear
// function of the row. As with real statement features, a few decisions lie behind many columns:
// every column is the sum of two logarithms of extents, or constant (a third of them).
struct SyntheticTask {
  FeatureMatrix features;
  std::vector<double> throughput;  // the best has 1; one in twelve has failed and has 0
};

// Equal arguments give equal candidates. REQUIRES columns ≥ 12, candidates ≥ 1.
SyntheticTask MakeSyntheticTask(uint64_t seed, int candidates, int columns = 164);

// Throughputs that differ by less are within the noise of timing: pairs of them are not counted
// (metric_ranking.h).
inline constexpr double kTimingNoise = 0.03;

}  // namespace hone::cost_model

#endif  // HONE_TESTS_SERVER_COST_MODEL_SYNTHETIC_H_
