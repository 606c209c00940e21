#include "worker/runner/probe.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "common/base/status_macros.h"
#include "worker/runner/limits.h"
#include "worker/runner/reference_loops.h"

namespace hone::runner {
namespace {

constexpr int64_t kFmaIterations = 20000;  // about 0.1 ms
// Too large for the inner caches of most CPUs; takes about 60 µs.
constexpr size_t kStreamBytes = size_t{1} << 20;
constexpr int kCalibrationSamples = 24;
// On an idle virtual machine whose host shares the L3 cache among others, streams vary up to 1.7
// times, and other caches' content matters, while kernels that stay in L2 vary by a thousandth.
constexpr double kStreamNoise = 1.75;

class RealProbe final : public Probe {
 public:
  RealProbe(double peak_gflops, const HoneRuntime& runtime, std::unique_ptr<TensorMemory> stream)
      : runtime_(runtime),
        width_(FmaWidths().back()),
        gflops_per_core_(peak_gflops / KernelThreads()),
        stream_(std::move(stream)) {
    for (int i = 0; i < kCalibrationSamples; ++i) Sample();
  }

  double Sample() override {
    // The slowest thread counts, so a disturbed core shows. Waking the threads does not count.
    results_.resize(runtime_.threads);
    RunOnEachThread(runtime_, [&](int64_t thread) {
      const double begin = NowNs();
      results_[thread].flops = RunFma(width_, kFmaIterations);
      results_[thread].ns = NowNs() - begin;
    });
    double fma = 0;
    double flops = 0;
    for (const Result& each : results_) {
      fma = std::max(fma, each.ns);
      flops = std::max(flops, each.flops);
    }
    const double begin = NowNs();
    sink_ = RunStream(stream_->data(), kStreamBytes);
    const double stream = NowNs() - begin;
    best_fma_ = std::min(best_fma_, fma);
    best_stream_ = std::min(best_stream_, stream);
    const double at_registration = gflops_per_core_ > 0 ? flops / gflops_per_core_ : best_fma_;
    recent_[samples_++ % recent_.size()] = fma;
    const size_t known = std::min(samples_, recent_.size());
    drift_ = *std::min_element(recent_.begin(), recent_.begin() + known) / at_registration;
    return std::max(fma / best_fma_, stream / best_stream_ / kStreamNoise);
  }

  double Drift() const override { return drift_; }

  int64_t Preemptions() const override {
    struct rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
  }

  double ProcessorNs() const override { return ProcessorTimeNs(); }

 private:
  struct alignas(64) Result {
    double ns = 0, flops = 0;
  };

  const HoneRuntime& runtime_;
  const int width_;
  const double gflops_per_core_;  // 10⁹ operations per second are one per nanosecond
  const std::unique_ptr<TensorMemory> stream_;
  double best_fma_ = std::numeric_limits<double>::infinity();
  double best_stream_ = std::numeric_limits<double>::infinity();
  std::array<double, 32> recent_ = {};  // times of the multiply-adds in the last samples
  size_t samples_ = 0;
  double drift_ = 1;
  std::vector<Result> results_;  // by thread
  volatile uint64_t sink_ = 0;
};

}  // namespace

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

}  // namespace hone::runner
