#ifndef HONE_WORKER_RUNNER_TIMING_H_
#define HONE_WORKER_RUNNER_TIMING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "worker/runner/probe.h"

namespace hone::runner {

struct TimingOptions {
  bool confirm = false;  // thorough, for finalists; else screening
  // Screening stops at twice this, drift of the machine reckoned in; 0: none yet.
  double best_latency_ns = 0;
  int min_blocks = 0;             // of a confirmation, at least: what its policy asks for
  double block_ns = 1e6;          // a block of runs takes at least this long
  int64_t max_count = INT64_MAX;  // runs in a block
};

struct Timing {
  std::vector<double> samples_ns;  // time of one run, per block
  double latency_ns = 0;           // their median
  double dispersion = 0;           // interquartile range over the median
  double drift = 1;                // median of the probe's drift beside the accepted blocks
  int remeasured = 0;              // blocks that were disturbed, and measured again
  bool stopped_early = false;
};

// Times a kernel that has already run once, in `first_ns`. `run(count)` runs it that often and
// returns the nanoseconds it took in all.
//
// Screening: at most 4 blocks; a kernel twice as slow as the best stops after its first run, or,
// where that says little because caches were cold – in runs of some milliseconds that are not
// slower by far –, after up to two warm ones; one that a whole block shows
// to be half slower stops there. Confirmation: at least 10 blocks (5 of a long kernel) and 30 ms.
// A block between two samples of the probe that show a disturbance is measured again, for half as
// many blocks more as were wanted; what then remains is used, for there is nothing better.
Timing TimeKernel(double first_ns, absl::FunctionRef<double(int64_t count)> run, Probe& probe,
                  const TimingOptions& options);

// The value below which the share `q` of the values lies, interpolated. REQUIRES values is not
// empty.
double Quantile(std::vector<double> values, double q);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_TIMING_H_
