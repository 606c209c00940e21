#ifndef HONE_TESTS_BENCH_COMPARE_INTERLEAVED_H_
#define HONE_TESTS_BENCH_COMPARE_INTERLEAVED_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/bench/compare/contender.h"

namespace hone::compare {

struct TimingOptions {
  int rounds = 25;
  absl::Duration block = absl::Milliseconds(25);  // time per contender and round, for several calls
  // Threads of other libraries spin for a while after a call. The next contender starts after they
  // sleep.
  absl::Duration pause = absl::Milliseconds(8);
  uint64_t seed = 1;  // for the order in a round
};

// The times of one contender.
struct Timing {
  std::vector<double> block_ns;  // mean of a call in each round
  double latency_ns = 0;         // their median
  double spread = 0;             // interquartile range over the median
};

// Times warm contenders in rounds of random order, one block each, so that drift of the machine
// affects all of them equally.
absl::StatusOr<std::vector<Timing>> TimeInterleaved(
    const std::vector<std::unique_ptr<Contender>>& contenders, const TimingOptions& options);

// Returns the median over the rounds of a's rate divided by b's rate. A run of `a` does `flops_a`
// operations, a run of `b` `flops_b`.
double MedianRateRatio(const Timing& a, double flops_a, const Timing& b, double flops_b);

// Returns how many times faster `a` is than `b`: the median over the rounds of b's time / a's time.
double MedianRatio(const Timing& a, const Timing& b);

}  // namespace hone::compare

#endif  // HONE_TESTS_BENCH_COMPARE_INTERLEAVED_H_
