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
  absl::Duration block = absl::Milliseconds(25);  // of one contender in one round, several calls
  // Threads of an OpenMP runtime spin for a while after a call; the next contender starts when they
  // sleep.
  absl::Duration pause = absl::Milliseconds(8);
  uint64_t seed = 1;  // of the order in a round
};

// What the rounds gave for one contender, in the order of the contenders.
struct Timing {
  std::vector<double> block_ns;  // mean of a call in each round
  double latency_ns = 0;         // their median
  double spread = 0;             // interquartile range over the median
};

// Times the contenders warm, in rounds of random order with one block each, so that drift of the
// machine meets all alike.
absl::StatusOr<std::vector<Timing>> TimeInterleaved(
    const std::vector<std::unique_ptr<Contender>>& contenders, const TimingOptions& options);

// A run of `a` does `flops_a` operations, one of `b` `flops_b`: the median over the rounds of the
// rate of a by that of b.
double MedianRateRatio(const Timing& a, double flops_a, const Timing& b, double flops_b);

// How many times faster `a` is than `b`: the median over the rounds of b's time by a's.
double MedianRatio(const Timing& a, const Timing& b);

}  // namespace hone::compare

#endif  // HONE_TESTS_BENCH_COMPARE_INTERLEAVED_H_
