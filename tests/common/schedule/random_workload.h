#ifndef HONE_TESTS_COMMON_SCHEDULE_RANDOM_WORKLOAD_H_
#define HONE_TESTS_COMMON_SCHEDULE_RANDOM_WORKLOAD_H_

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload.h"

namespace hone::schedule {

// The text of a small workload drawn at random: contractions, convolutions with stride and padding,
// fused chains, row reductions, transposes, reshapes, windows, argmax, and mixed precision. Every
// extent is at most `max_extent`.
std::string RandomWorkloadText(Rng& rng, int64_t max_extent = 9);

// Inputs of small whole numbers: every result of the workloads above is exact in every order of
// evaluation.
std::vector<ir::Values> SmallIntegerInputs(const ir::Workload& workload, Rng& rng);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_RANDOM_WORKLOAD_H_
