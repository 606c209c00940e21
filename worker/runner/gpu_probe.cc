#include "worker/runner/gpu_probe.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "common/base/status_macros.h"
#include "common/target/gpu_module.h"
#include "worker/runner/gpu_buffer.h"
#include "worker/runner/gpu_reference_kernels.h"
#include "worker/runner/reference_loops.h"

namespace hone::runner {
namespace {

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kThreads = 64;       // per block
constexpr int64_t kBlocksOfUnit = 16;  // enough threads to keep a compute unit busy
constexpr double kSampleNs = 2e5;
constexpr int64_t kMaxIterations = 1 << 24;
constexpr int64_t kSmallestStream = 1 << 20, kLargestStream = 64 << 20;
constexpr int kCalibrationSamples = 24;
constexpr int kPeakRounds = 8;
constexpr double kSteadyWithin = 1.05;

// The two kernels with their memory.
class Loops {
 public:
  static absl::StatusOr<Loops> Make(target::GpuContext& context, int64_t stream_bytes) {
    Loops loops(context);
    ReferenceKernels kernels = context.kind() == target::Kind::kCuda
                                   ? CudaReferenceKernels()
                                   : OpenClReferenceKernels(context.is_cpu);
    loops.lanes_ = kernels.lanes;
    target::GpuModule module{
        .kind = context.kind(), .arguments = 1, .code = std::move(kernels.code)};
    for (const char* const name : {"hone_fma", "hone_stream"}) {
      module.launches.push_back({.kernel = name,
                                 .grid = {context.units * kBlocksOfUnit, 1, 1},
                                 .block = {loops.block(), 1, 1}});
    }
    HONE_ASSIGN_OR_RETURN(loops.program_, context.Load(module, "the reference kernels"));
    HONE_ASSIGN_OR_RETURN(loops.out_,
                          GpuBuffer::Create(context, loops.threads() * kVectorBytes, 0));
    HONE_ASSIGN_OR_RETURN(
        loops.in_,
        GpuBuffer::Create(context, std::min(stream_bytes, context.max_allocation_bytes / 4), 0));
    return loops;
  }

  double Flops(int64_t iterations) const {
    return static_cast<double>(threads() * iterations * kFmaChains * lanes_) * 2;
  }
  int lanes() const { return lanes_; }
  int64_t stream_bytes() const { return in_->bytes(); }
  // Return nanoseconds.
  absl::StatusOr<double> Fma(int64_t iterations) const { return Run(kFma, iterations); }
  absl::StatusOr<double> Stream(int64_t bytes) const { return Run(kStream, bytes / kVectorBytes); }

 private:
  static constexpr size_t kFma = 0, kStream = 1;  // launches

  explicit Loops(target::GpuContext& context) : context_(context) {}

  int64_t block() const {
    return std::min({kThreads, context_.max_threads, context_.max_block[0]});
  }
  int64_t threads() const { return context_.units * kBlocksOfUnit * block(); }

  absl::StatusOr<double> Run(size_t launch, int64_t amount) const {
    const target::GpuArgument arguments[] = {out_->memory(), in_->memory(),
                                             static_cast<int32_t>(amount)};
    HONE_RETURN_IF_ERROR(program_->SetArguments(launch, arguments));
    return program_->Run({&launch, 1}, 1);
  }

  target::GpuContext& context_;
  int lanes_ = 1;
  std::unique_ptr<target::GpuProgram> program_;
  std::unique_ptr<GpuBuffer> out_, in_;
};

// Doubles `amount` until a run takes kSampleNs or `most` is reached. Returns the last amount.
template <typename Run>
absl::StatusOr<int64_t> Sized(int64_t amount, int64_t most, Run run) {
  HONE_RETURN_IF_ERROR(run(amount).status());  // drivers may compile at the first launch
  for (;; amount *= 2) {
    HONE_ASSIGN_OR_RETURN(const double ns, run(amount));
    if (ns >= kSampleNs || 2 * amount > most) return amount;
  }
}

class GpuProbe final : public Probe {
 public:
  GpuProbe(Loops loops, int64_t iterations, int64_t bytes, double peak_gflops, bool is_cpu)
      : loops_(std::move(loops)),
        iterations_(iterations),
        bytes_(bytes),
        peak_gflops_(peak_gflops),
        is_cpu_(is_cpu) {
    for (int i = 0; i < kCalibrationSamples; ++i) Sample();
  }

  // If the device fails, nothing counts as disturbed: the next run of a kernel reports the failure.
  double Sample() override {
    const absl::StatusOr<double> fma = loops_.Fma(iterations_);
    const absl::StatusOr<double> stream = loops_.Stream(bytes_);
    if (!fma.ok() || !stream.ok()) return 1;
    best_fma_ = std::min(best_fma_, *fma);
    best_stream_ = std::min(best_stream_, *stream);
    const double at_registration =
        peak_gflops_ > 0 ? loops_.Flops(iterations_) / peak_gflops_ : best_fma_;
    recent_[samples_++ % recent_.size()] = *fma;
    const size_t known = std::min(samples_, recent_.size());
    drift_ = *std::min_element(recent_.begin(), recent_.begin() + known) / at_registration;
    return std::max(*fma / best_fma_, *stream / best_stream_);
  }

  double Drift() const override { return drift_; }

  // Threads of a GPU do not compete with other processes for cores.
  int64_t Preemptions() const override {
    struct rusage usage = {};
    if (is_cpu_) getrusage(RUSAGE_SELF, &usage);
    return usage.ru_nivcsw;
  }

  double ProcessorNs() const override { return is_cpu_ ? ProcessorTimeNs() : NowNs(); }

 private:
  const Loops loops_;
  const int64_t iterations_;
  const int64_t bytes_;
  const double peak_gflops_;
  const bool is_cpu_;
  double best_fma_ = std::numeric_limits<double>::infinity();
  double best_stream_ = std::numeric_limits<double>::infinity();
  std::array<double, 32> recent_ = {};  // times of the multiply-adds in the last samples
  size_t samples_ = 0;
  double drift_ = 1;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Probe>> MakeGpuProbe(target::GpuContext& context,
                                                    double peak_gflops) {
  HONE_ASSIGN_OR_RETURN(Loops loops, Loops::Make(context, kLargestStream));
  HONE_ASSIGN_OR_RETURN(const int64_t iterations,
                        Sized(16, kMaxIterations, [&](int64_t n) { return loops.Fma(n); }));
  HONE_ASSIGN_OR_RETURN(const int64_t bytes,
                        Sized(std::min(kSmallestStream, loops.stream_bytes()), loops.stream_bytes(),
                              [&](int64_t n) { return loops.Stream(n); }));
  return std::make_unique<GpuProbe>(std::move(loops), iterations, bytes, peak_gflops,
                                    context.is_cpu);
}

absl::StatusOr<Peak> MeasureGpuPeak(target::GpuContext& context) {
  // Reads a stream that is too large for any cache.
  HONE_ASSIGN_OR_RETURN(const Loops loops,
                        Loops::Make(context, std::max(4 * context.cache_bytes, kLargestStream)));
  HONE_ASSIGN_OR_RETURN(const int64_t iterations,
                        Sized(16, kMaxIterations, [&](int64_t n) { return loops.Fma(n); }));
  double stream = INFINITY;
  std::array<double, kPeakRounds> rounds;
  for (double& fma_ns : rounds) {
    HONE_ASSIGN_OR_RETURN(fma_ns, loops.Fma(8 * iterations));
    HONE_ASSIGN_OR_RETURN(const double stream_ns, loops.Stream(loops.stream_bytes()));
    stream = std::min(stream, stream_ns);
  }
  std::ranges::sort(rounds);
  const double fma = rounds[0];
  Peak peak;
  peak.steady = rounds[kPeakRounds / 2] < kSteadyWithin * fma;
  peak.cores = context.units;
  const double gflops = loops.Flops(8 * iterations) / fma;
  const double gbps = static_cast<double>(loops.stream_bytes()) / stream;
  peak.widths.push_back({.vector_bits = 32 * loops.lanes(),
                         .gflops_one_core = gflops / context.units,
                         .gflops_all_cores = gflops});
  peak.read_gbps_one_core = gbps / context.units;
  peak.read_gbps_all_cores = gbps;
  return peak;
}

}  // namespace hone::runner
