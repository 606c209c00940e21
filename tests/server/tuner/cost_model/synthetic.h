#ifndef HONE_TESTS_SERVER_TUNER_COST_MODEL_SYNTHETIC_H_
#define HONE_TESTS_SERVER_TUNER_COST_MODEL_SYNTHETIC_H_

#include <cstdint>
#include <vector>

#include "server/tuner/cost_model/cost_model.h"

namespace hone::cost_model {

// Candidates of a task with known throughput: the sum over a candidate's statements of a nonlinear
// function of the row. As with real statement features, a few decisions determine many columns.
// Each column is the sum of two logarithms of extents, or constant (a third of the columns).
struct SyntheticTask {
  FeatureMatrix features;
  std::vector<double> throughput;  // 1 for the best; 0 for failed candidates (one in twelve)
};

// Equal arguments give equal tasks. REQUIRES: columns ≥ 12, candidates ≥ 1.
SyntheticTask MakeSyntheticTask(uint64_t seed, int candidates, int columns = 164);

// Throughputs that differ by less than this are within timing noise, and such pairs are not counted
// (metric.h).
inline constexpr double kTimingNoise = 0.03;

}  // namespace hone::cost_model

#endif  // HONE_TESTS_SERVER_TUNER_COST_MODEL_SYNTHETIC_H_
