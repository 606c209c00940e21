#include "worker/runner/timing.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "worker/runner/limits.h"
#include "worker/runner/peak.h"

namespace hone::runner {
namespace {

constexpr int64_t kFmaIterations = 20000;  // about 0.1 ms
constexpr double kFmaNs = 0.4e6;           // with fewer iterations if it takes more
// Takes about 60 µs from memory, and 40 µs to be evicted.
constexpr size_t kStreamBytes = size_t{1} << 20;
constexpr int kCalibrationSamples = 24;
// On an idle virtual machine whose host shares the memory among others, streams vary up to 1.7
// times, while kernels that stay in L2 vary by a thousandth.
constexpr double kStreamNoise = 1.75;
constexpr double kDisturbed = 1.15;  // the probe's own noise is a few percent

class RealProbe final : public Probe {
 public:
  RealProbe(double peak_gflops, const HoneRuntime& runtime, std::unique_ptr<TensorMemory> stream)
      : runtime_(runtime),
        width_(FmaWidths().back()),
        gflops_per_core_(peak_gflops / KernelThreads()),
        stream_(std::move(stream)) {
    // An emulator computes a hundred times more slowly, and would spend its time on samples.
    double tenth_ns = INFINITY;
    for (int i = 0; i < 3; ++i) {
      const double begin = NowNs();
      RunFma(width_, kFmaIterations / 10);
      tenth_ns = std::min(tenth_ns, std::max(NowNs() - begin, 1.0));
    }
    iterations_ = static_cast<int64_t>(kFmaIterations * std::min(1.0, kFmaNs / (10 * tenth_ns)));
    iterations_ = std::max(iterations_, int64_t{100});
    for (int i = 0; i < kCalibrationSamples; ++i) Sample();
  }

  double Sample() override {
    const double first = SampleOnce();
    // A daemon may have run just during the sample, which says nothing about the kernel.
    return first > kDisturbed ? std::min(first, SampleOnce()) : first;
  }

  double Drift() const override { return times_.drift(); }
  std::vector<double> WaitedNs() const override {
    // A wait is known when it is over. A thread that waits now may have missed a whole block.
    RunOnEachThread(runtime_, [](int64_t) {});
    return KernelThreadsWaitedNs();
  }
  double ProcessorNs() const override { return ProcessorTimeNs(); }

 private:
  struct alignas(64) Result {
    double ns = 0, flops = 0;
  };

  double SampleOnce() {
    // The slowest thread counts, so a disturbed core shows. Waking the threads does not count.
    results_.resize(runtime_.threads);
    RunOnEachThread(runtime_, [&](int64_t thread) {
      const double begin = NowNs();
      results_[thread].flops = RunFma(width_, iterations_);
      results_[thread].ns = NowNs() - begin;
    });
    double fma = 0;
    double flops = 0;
    for (const Result& each : results_) {
      fma = std::max(fma, each.ns);
      flops = std::max(flops, each.flops);
    }
    Evict(stream_->data(), kStreamBytes);  // what the kernel has left in the caches varies
    const double begin = NowNs();
    sink_ = RunStream(stream_->data(), kStreamBytes);
    const double stream = NowNs() - begin;
    return times_.Add(fma, stream, gflops_per_core_ > 0 ? flops / gflops_per_core_ : 0);
  }

  const HoneRuntime& runtime_;
  const int width_;
  const double gflops_per_core_;  // 10⁹ operations per second are one per nanosecond
  const std::unique_ptr<TensorMemory> stream_;
  int64_t iterations_ = kFmaIterations;
  ProbeTimes times_{kStreamNoise};
  std::vector<Result> results_;  // by thread
  volatile uint64_t sink_ = 0;
};

constexpr double kBlockNs = 1e6;        // a block of runs takes at least this long
constexpr double kHopeless = 2;         // times the best: not worth a block
constexpr double kClearlySlower = 1.5;  // times the best: one block is enough
constexpr double kShort = 2e6;          // a shorter first run is not representative
// A first run below this time, and below this multiple of the hopeless latency, is judged only
// after a warm run: freshly packed weights are in one core's cache, and inputs are in none.
constexpr double kColdMatters = 20e6;
constexpr double kColdFactor = 3;
constexpr double kFirstCounts = 5e6;  // a first run above this is a sample like the others
// A confirmation repeats in fresh processes, which differ more than the blocks of one process, so
// more processes are better than longer ones.
constexpr int kConfirmBlocks = 10;
constexpr int kConfirmLongBlocks =
    kThoroughBlocks;  // for kernels whose first run already counts as a sample
constexpr double kConfirmNs = 30e6;
// A brief confirmation is the first of a task; another one follows if there is time.
constexpr double kBriefNs = 5e6;
// Daemons of an idle machine and waiting processes of Hone take less of a thread's time than this;
// a process that computes takes half of it.
constexpr double kMostWaited = 0.03;
// The extra blocks that replace disturbed ones: at least this share of the wanted number, and as
// many as fit into the time.
constexpr double kExtraBlocks = 0.5;
constexpr double kExtraNs = 50e6;
constexpr double kExtraConfirmNs = 250e6;
constexpr int kWarmRuns = 2;
constexpr int kWarmAttempts = 6;  // including preempted ones

// While a kernel runs, at least one thread computes, so the process uses at least the clock's time.
constexpr double kLeastBusy = 0.5;

bool IsInterrupted(double waited_ns, double ns) { return waited_ns > kMostWaited * ns; }

// Observes what other processes take from this one, from the construction on.
class Interruptions {
 public:
  explicit Interruptions(const Probe& probe)
      : probe_(probe),
        waited_ns_(probe.WaitedNs()),
        processor_ns_(probe.ProcessorNs()),
        begin_ns_(NowNs()) {}

  // `ns`: the time of the runs since then.
  bool Interrupted(double ns) const {
    const double busy_ns = probe_.ProcessorNs() - processor_ns_;
    // Emptying the caches takes time, too, in which threads may wait.
    const double all_ns = std::max(ns, NowNs() - begin_ns_);
    return IsInterrupted(LongestWaitNs(waited_ns_, probe_.WaitedNs()), all_ns) ||
           busy_ns < kLeastBusy * ns;
  }

 private:
  const Probe& probe_;
  const std::vector<double> waited_ns_;
  const double processor_ns_;
  const double begin_ns_;
};

int WantedBlocks(double run_ns, const TimingOptions& options) {
  if (options.confirm) {
    const double block_ns = std::max(kBlockNs, run_ns);
    if (options.IsBrief()) {
      return std::max(options.min_blocks, static_cast<int>(std::ceil(kBriefNs / block_ns)));
    }
    return std::max({run_ns >= kFirstCounts ? kConfirmLongBlocks : kConfirmBlocks,
                     options.min_blocks, static_cast<int>(std::ceil(kConfirmNs / block_ns))});
  }
  if (run_ns >= kFirstCounts) return 2;
  return run_ns >= kBlockNs ? 3 : 4;
}

Timing Summarize(Timing timing) {
  timing.latency_ns = Quantile(timing.samples_ns, 0.5);
  const double spread = Quantile(timing.samples_ns, 0.75) - Quantile(timing.samples_ns, 0.25);
  timing.dispersion = timing.latency_ns > 0 ? spread / timing.latency_ns : 0;
  return timing;
}

}  // namespace

double ProbeTimes::Add(double fma, double stream, double registered_fma) {
  best_fma_ = std::min(best_fma_, fma);
  best_stream_ = std::min(best_stream_, stream);
  recent_[samples_++ % recent_.size()] = fma;
  const size_t known = std::min(samples_, recent_.size());
  drift_ = *std::min_element(recent_.begin(), recent_.begin() + known) /
           (registered_fma > 0 ? registered_fma : best_fma_);
  return std::max(fma / best_fma_, stream / best_stream_ / stream_noise_);
}

double LongestWaitNs(const std::vector<double>& before, const std::vector<double>& after) {
  double longest_ns = 0;
  for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
    longest_ns = std::max(longest_ns, after[i] - before[i]);
  }
  return longest_ns;
}

double ProcessorTimeNs() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

absl::StatusOr<std::unique_ptr<Probe>> CreateProbe(double peak_gflops, const HoneRuntime& runtime) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<TensorMemory> stream,
                        TensorMemory::Create(kStreamBytes, 0));
  return std::make_unique<RealProbe>(peak_gflops, runtime, std::move(stream));
}

Timing TimeKernel(double first_ns, absl::FunctionRef<double(int64_t count)> run, Probe& probe,
                  const TimingOptions& options) {
  Timing timing;
  timing.drift = probe.Drift();
  const double hopeless_ns = !options.confirm && options.best_latency_ns > 0
                                 ? kHopeless * options.best_latency_ns * timing.drift
                                 : INFINITY;
  double run_ns = first_ns;
  int undisturbed_runs = 0;
  bool interrupted = IsInterrupted(options.first_waited_ns, first_ns);
  for (int i = 0; i < kWarmAttempts && undisturbed_runs < kWarmRuns; ++i) {
    const bool cold =
        run_ns < kShort ||
        run_ns < (interrupted ? kColdMatters : std::min(kColdMatters, kColdFactor * hopeless_ns));
    const bool doubted = run_ns > hopeless_ns && cold;
    if (!doubted && (i > 0 || run_ns >= kShort)) break;
    const Interruptions interruptions(probe);
    const double warm_ns = run(1);
    run_ns = std::min(run_ns, warm_ns);
    interrupted = interruptions.Interrupted(warm_ns);
    if (!interrupted) ++undisturbed_runs;
  }
  if (run_ns > hopeless_ns) {
    timing.samples_ns = {run_ns};
    timing.stopped_early = true;
    return Summarize(std::move(timing));
  }
  if (run_ns >= kFirstCounts) timing.samples_ns.push_back(first_ns);

  const int wanted = WantedBlocks(run_ns, options);
  std::vector<double> drifts;
  std::vector<double> disturbed;
  double before = probe.Sample();
  int accepted = 0;
  const double most_extra = std::ceil(kExtraBlocks * wanted);
  const double most_extra_ns = options.confirm && !options.IsBrief() ? kExtraConfirmNs : kExtraNs;
  double extra_ns = 0;
  while (accepted < wanted &&
         (static_cast<double>(disturbed.size()) < most_extra || extra_ns < most_extra_ns)) {
    const double count_wanted = std::ceil(kBlockNs / std::max(run_ns, 1.0));
    const int64_t count =
        std::min(static_cast<int64_t>(std::max(count_wanted, 1.0)), options.max_count);
    const Interruptions interruptions(probe);
    const double block_ns = run(count);
    const bool is_interrupted = interruptions.Interrupted(block_ns);
    const double sample = block_ns / static_cast<double>(count);
    const double probe_begin_ns = NowNs();
    const double after = probe.Sample();
    const double probe_ns = NowNs() - probe_begin_ns;
    const double disturbance = std::max(before, after);
    before = after;
    run_ns = std::min(run_ns, sample);
    if (disturbance > kDisturbed || is_interrupted) {
      disturbed.push_back(sample);
      extra_ns += std::max(block_ns, kBlockNs) + probe_ns;
      continue;
    }
    ++accepted;
    timing.samples_ns.push_back(sample);
    drifts.push_back(probe.Drift());
    if (!options.confirm && options.best_latency_ns > 0 &&
        sample > kClearlySlower * options.best_latency_ns * probe.Drift()) {
      timing.stopped_early = accepted < wanted;
      break;
    }
  }
  if (2 * accepted < wanted && !timing.stopped_early) {
    std::sort(disturbed.begin(), disturbed.end());
    const auto missing = std::min(disturbed.size(), static_cast<size_t>(wanted - accepted));
    timing.samples_ns.insert(timing.samples_ns.end(), disturbed.begin(),
                             disturbed.begin() + static_cast<ptrdiff_t>(missing));
    drifts.push_back(probe.Drift());
  }
  timing.remeasured = static_cast<int>(disturbed.size());
  timing.drift = Quantile(drifts, 0.5);
  return Summarize(std::move(timing));
}

}  // namespace hone::runner
