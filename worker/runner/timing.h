#ifndef HONE_WORKER_RUNNER_TIMING_H_
#define HONE_WORKER_RUNNER_TIMING_H_

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/target/hone_runtime.h"
#include "worker/runner/tensor_memory.h"

namespace hone::runner {

// Detects whether the machine has become slower. Runs two short reference kernels: multiply-adds in
// registers on every thread that kernels use, and a streaming read. It is sampled between timings;
// other processes, steal time and throttling all show as a longer time. A sample takes about 0.2
// ms. Owned by the timing thread.
class Probe {
 public:
  virtual ~Probe() = default;
  // Returns the current time divided by the best time so far, the larger ratio of the two kernels.
  // That of the stream is divided by its usual noise. At least 1, apart from noise.
  virtual double Sample() = 0;
  // Returns the time of the fastest multiply-adds among the recent samples, divided by the time
  // they would have taken at the worker's registration. This shows slow phases that outlast a
  // process; it ignores disturbances of single samples.
  virtual double Drift() const = 0;
  // Returns for how long each thread of kernels has had to wait for a core, in total nanoseconds,
  // after all have one. How often says little: the daemons of an idle machine take a core hundreds
  // of times a second, for some microseconds each.
  virtual std::vector<double> WaitedNs() const = 0;
  // Returns the processor time that all threads of this process have used. Less than the clock's
  // time in a run means that no thread had a core, for example because a thread that was woken had
  // to wait for one. On a device that other processes cannot take, the clock's time.
  virtual double ProcessorNs() const = 0;
};

// Returns the longest wait of a thread between two results of Probe::WaitedNs.
double LongestWaitNs(const std::vector<double>& before, const std::vector<double>& after);

// Returns the processor time that all threads of this process have used, for implementations.
double ProcessorTimeNs();

// The times of a probe's two kernels in nanoseconds, for implementations.
class ProbeTimes {
 public:
  // `stream_noise`: how many times the best a stream usually takes.
  explicit ProbeTimes(double stream_noise = 1) : stream_noise_(stream_noise) {}

  // `registered_fma`: what the multiply-adds would have taken at the registration; 0: unknown.
  // Returns what Probe::Sample returns.
  double Add(double fma, double stream, double registered_fma);
  double drift() const { return drift_; }

 private:
  const double stream_noise_;
  double best_fma_ = std::numeric_limits<double>::infinity();
  double best_stream_ = std::numeric_limits<double>::infinity();
  std::array<double, 32> recent_ = {};  // times of the multiply-adds in the last samples
  size_t samples_ = 0;
  double drift_ = 1;
};

// Measures the best times for some milliseconds. `peak_gflops` is the rate of all cores at
// registration; 0: unknown, the best rate in this process is used. REQUIRES: the timing lock is
// held, `runtime` outlives the probe. ResourceExhausted: no memory for the stream.
absl::StatusOr<std::unique_ptr<Probe>> CreateProbe(double peak_gflops, const HoneRuntime& runtime);

// A confirmation whose policy asks for fewer blocks is brief.
inline constexpr int kThoroughBlocks = 5;

struct TimingOptions {
  bool confirm = false;  // thorough, for finalists; else screening
  // Screening stops if the latency is twice this one, corrected for drift; 0: no best yet.
  double best_latency_ns = 0;
  double first_waited_ns = 0;     // LongestWaitNs during the first run
  int min_blocks = 0;             // of a confirmation, from its policy; 0: as many as usual
  int64_t max_count = INT64_MAX;  // runs in a block
  bool IsBrief() const { return confirm && min_blocks > 0 && min_blocks < kThoroughBlocks; }
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
// confirmation takes at least 10 blocks (5 for a long kernel) and 30 ms, and a brief one 5 ms.
//
// A block is disturbed if the probe sample before or after it shows a disturbance, or if other
// processes took cores from the kernel's threads during the block. Disturbed blocks are measured
// again, for a limited time. If there are still too few undisturbed ones, the fastest disturbed
// blocks are used too, because a disturbance only adds time.
Timing TimeKernel(double first_ns, absl::FunctionRef<double(int64_t count)> run, Probe& probe,
                  const TimingOptions& options);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_TIMING_H_
