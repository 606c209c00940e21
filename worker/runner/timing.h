#ifndef HONE_WORKER_RUNNER_TIMING_H_
#define HONE_WORKER_RUNNER_TIMING_H_

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "worker/runner/probe.h"

namespace hone::runner {

struct TimingOptions {
  bool confirm = false;  // thorough, for finalists; else screening
  // Screening stops if the latency is twice this one, corrected for drift; 0: no best yet.
  double best_latency_ns = 0;
  int64_t first_preemptions = 0;  // Probe::Preemptions() during the first run
  int min_blocks = 0;             // of a confirmation, from its policy
  int64_t max_count = INT64_MAX;  // runs in a block
};

struct Timing {
  std::vector<double> samples_ns;  // time of one run, per block
  double latency_ns = 0;           // their median
  double dispersion = 0;           // interquartile range over the median
  double drift = 1;                // median of the probe's drift around the accepted blocks
  int remeasured = 0;              // disturbed blocks that were measured again
  bool stopped_early = false;
};

// Times a kernel that has already run once, in `first_ns`. `run(count)` runs it `count` times and
// returns the total nanoseconds.
//
// Screening takes at most 4 blocks. A kernel twice as slow as the best stops after its first run.
// If the first run could be slow because of cold caches (it took at most some milliseconds and is
// not much slower than that), or if other processes interrupted it, up to two warm runs decide
// instead. A kernel that takes 1.5 times as long in a whole block stops after that block. A
// confirmation takes at least 10 blocks (5 for a long kernel) and 30 ms.
//
// A block is disturbed if the probe sample before or after it shows a disturbance, or if other
// processes took cores from the kernel's threads during the block. Disturbed blocks are measured
// again, for a limited time. If there are still too few undisturbed ones, the fastest disturbed
// blocks are used too, because a disturbance only adds time.
Timing TimeKernel(double first_ns, absl::FunctionRef<double(int64_t count)> run, Probe& probe,
                  const TimingOptions& options);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_TIMING_H_
