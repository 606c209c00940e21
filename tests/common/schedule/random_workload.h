#ifndef HONE_TESTS_COMMON_SCHEDULE_RANDOM_WORKLOAD_H_
#define HONE_TESTS_COMMON_SCHEDULE_RANDOM_WORKLOAD_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/rng.h"
#include "common/ir/interpreter.h"
#include "common/ir/workload.h"

namespace hone::schedule {

// A small random workload: a pattern (contractions, convolutions with stride and padding, fused
// chains, row reductions, transposes, reshapes, windows, argmax, mixed precision, dot instructions,
// quantization, shifts) and its extents.
struct RandomWorkload {
  static constexpr int kExtents = 6;
  int pattern = 0;
  std::array<int64_t, kExtents> extents = {};  // of the letters in the pattern, at least 1

  std::string Text() const;
  std::shared_ptr<const ir::Workload> Parsed() const;
};

// Every extent is at most `max_extent`.
RandomWorkload DrawWorkload(Rng& rng, int64_t max_extent = 9);

// Inputs of small integers: every result of the workloads above is exact in any order of
// evaluation.
std::vector<ir::Values> SmallIntegerInputs(const ir::Workload& workload, Rng& rng);

}  // namespace hone::schedule

#endif  // HONE_TESTS_COMMON_SCHEDULE_RANDOM_WORKLOAD_H_
