#include "worker/runner/probe.h"

#include <algorithm>
#include <chrono>
#include <limits>

#include "common/base/status_macros.h"
#include "worker/runner/reference_loops.h"

namespace hone::runner {
namespace {

constexpr int64_t kFmaIterations = 6000;  // about 30 µs
constexpr size_t kStreamBytes = size_t{1}
                                << 20;  // out of the inner caches on most CPUs; about 60 µs
constexpr int kCalibrationSamples = 24;

double Now() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

class RealProbe final : public Probe {
 public:
  explicit RealProbe(std::unique_ptr<TensorMemory> stream)
      : width_(FmaWidths().back()), stream_(std::move(stream)) {
    for (int i = 0; i < kCalibrationSamples; ++i) Sample();
  }

  double Sample() override {
    const double begin = Now();
    // The region ends when the slowest thread does: a disturbed core shows.
#pragma omp parallel
    { RunFma(width_, kFmaIterations); }
    const double middle = Now();
    sink_ = RunStream(stream_->data(), kStreamBytes);
    const double end = Now();
    best_fma_ = std::min(best_fma_, middle - begin);
    best_stream_ = std::min(best_stream_, end - middle);
    return std::max((middle - begin) / best_fma_, (end - middle) / best_stream_);
  }

 private:
  const int width_;
  const std::unique_ptr<TensorMemory> stream_;
  double best_fma_ = std::numeric_limits<double>::infinity();
  double best_stream_ = std::numeric_limits<double>::infinity();
  volatile uint64_t sink_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Probe>> CreateProbe() {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<TensorMemory> stream,
                        TensorMemory::Create(kStreamBytes, 0));
  return std::make_unique<RealProbe>(std::move(stream));
}

}  // namespace hone::runner
