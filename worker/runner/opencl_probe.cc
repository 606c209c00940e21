#include "worker/runner/opencl_probe.h"

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/runner/opencl_buffer.h"
#include "worker/runner/reference_loops.h"

namespace hone::runner {
namespace {

// Eight independent chains of LANES lanes hide the latency of multiply-adds. The threads of a block
// read parts of the stream: next to each other on a GPU, one after the other on a CPU.
constexpr char kSource[] = R"(
#define FLOATS_(n) float##n
#define FLOATS(n) FLOATS_(n)
#ifdef FP_FAST_FMAF
#define MULTIPLY_ADD fma
#else
#define MULTIPLY_ADD mad
#endif
typedef FLOATS(LANES) floats;
kernel void hone_fma(global float4* out, int iterations) {
  floats a = (floats)(get_local_id(0)), b = a + 1, c = a + 2, d = a + 3;
  floats e = a + 4, f = a + 5, g = a + 6, h = a + 7;
  const floats x = (floats)(0.999f), y = (floats)(0.001f);
  for (int i = 0; i < iterations; ++i) {
    a = MULTIPLY_ADD(a, x, y); b = MULTIPLY_ADD(b, x, y); c = MULTIPLY_ADD(c, x, y); d = MULTIPLY_ADD(d, x, y);
    e = MULTIPLY_ADD(e, x, y); f = MULTIPLY_ADD(f, x, y); g = MULTIPLY_ADD(g, x, y); h = MULTIPLY_ADD(h, x, y);
  }
  const floats sum = a + b + c + d + e + f + g + h;
  out[get_global_id(0)] = vload4(0, (const private float*)&sum);
}
kernel void hone_stream(global float4* out, int count, global const uint4* in) {
  uint4 sum = (uint4)(0);
#if IN_TURN
  const int part = count / get_global_size(0), begin = get_global_id(0) * part;
  for (int i = begin; i < begin + part; ++i) sum ^= in[i];
#else
  for (int i = get_global_id(0); i < count; i += get_global_size(0)) sum ^= in[i];
#endif
  out[get_global_id(0)] = convert_float4(sum);
}
)";
constexpr int kChains = 8;
constexpr int kGpuLanes = 4, kCpuLanes = 16;
constexpr int64_t kVectorBytes = 16;
constexpr int64_t kThreads = 64;       // of a block
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
  static absl::StatusOr<Loops> Make(OpenClContext& context, int64_t stream_bytes) {
    Loops loops(context);
    HONE_ASSIGN_OR_RETURN(loops.program_, context.Build(loops.Source(), "the reference kernels"));
    HONE_ASSIGN_OR_RETURN(loops.fma_, context.MakeKernel(loops.program_.get(), "hone_fma"));
    HONE_ASSIGN_OR_RETURN(loops.stream_, context.MakeKernel(loops.program_.get(), "hone_stream"));
    HONE_ASSIGN_OR_RETURN(loops.out_,
                          OpenClBuffer::Create(context, loops.threads() * kVectorBytes, 0));
    HONE_ASSIGN_OR_RETURN(
        loops.in_,
        OpenClBuffer::Create(context, std::min(stream_bytes, context.max_allocation_bytes / 4), 0));
    return loops;
  }

  double Flops(int64_t iterations) const {
    return static_cast<double>(threads() * iterations * kChains * lanes()) * 2;
  }
  int lanes() const { return context_.is_cpu ? kCpuLanes : kGpuLanes; }
  int64_t stream_bytes() const { return in_->bytes(); }
  // Nanoseconds.
  absl::StatusOr<double> Fma(int64_t iterations) const { return Run(fma_.get(), iterations); }
  absl::StatusOr<double> Stream(int64_t bytes) const {
    return Run(stream_.get(), bytes / kVectorBytes);
  }

 private:
  std::string Source() const {
    return absl::StrCat("#define LANES ", lanes(), "\n#define IN_TURN ", context_.is_cpu ? 1 : 0,
                        "\n", kSource);
  }

  explicit Loops(OpenClContext& context)
      : context_(context),
        program_(nullptr, context.api().ReleaseProgram),
        fma_(nullptr, context.api().ReleaseKernel),
        stream_(nullptr, context.api().ReleaseKernel) {}

  int64_t block() const {
    return std::min({kThreads, context_.max_threads, static_cast<int64_t>(context_.max_block[0])});
  }
  int64_t threads() const { return context_.units * kBlocksOfUnit * block(); }

  absl::StatusOr<double> Run(cl_kernel kernel, int64_t amount) const {
    const opencl::Api& api = context_.api();
    const cl_mem out = out_->data(), in = in_->data();
    const auto number = static_cast<cl_int>(amount);
    cl_int code = api.SetKernelArg(kernel, 0, sizeof(out), &out);
    if (code == CL_SUCCESS) code = api.SetKernelArg(kernel, 1, sizeof(number), &number);
    if (code == CL_SUCCESS && kernel == stream_.get()) {
      code = api.SetKernelArg(kernel, 2, sizeof(in), &in);
    }
    const auto global = static_cast<size_t>(threads()), local = static_cast<size_t>(block());
    const double begin = NowNs();
    cl_event event = nullptr;
    if (code == CL_SUCCESS) {
      code = api.EnqueueNDRangeKernel(context_.queue(), kernel, 1, nullptr, &global, &local, 0,
                                      nullptr, &event);
    }
    const ClOwned<cl_event> owned(event, api.ReleaseEvent);
    HONE_RETURN_IF_ERROR(context_.Check(code, "launch a reference kernel"));
    HONE_RETURN_IF_ERROR(context_.Finish("run a reference kernel"));
    const double host_ns = NowNs() - begin;
    const double device_ns = context_.Between(event, event);
    return device_ns > 0 && device_ns <= host_ns ? device_ns : host_ns;
  }

  OpenClContext& context_;
  ClOwned<cl_program> program_;
  ClOwned<cl_kernel> fma_, stream_;
  std::unique_ptr<OpenClBuffer> out_, in_;
};

// The first amount, doubled until a run takes kSampleNs or the amount is `most`.
template <typename Run>
absl::StatusOr<int64_t> Sized(int64_t amount, int64_t most, Run run) {
  HONE_RETURN_IF_ERROR(run(amount).status());  // drivers may compile at the first launch
  for (;; amount *= 2) {
    HONE_ASSIGN_OR_RETURN(const double ns, run(amount));
    if (ns >= kSampleNs || 2 * amount > most) return amount;
  }
}

class OpenClProbe final : public Probe {
 public:
  OpenClProbe(Loops loops, int64_t iterations, int64_t bytes, double peak_gflops, bool is_cpu)
      : loops_(std::move(loops)),
        iterations_(iterations),
        bytes_(bytes),
        peak_gflops_(peak_gflops),
        is_cpu_(is_cpu) {
    for (int i = 0; i < kCalibrationSamples; ++i) Sample();
  }

  // After a failure of the device, which the next run of a kernel reports, nothing is disturbed.
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

absl::StatusOr<std::unique_ptr<Probe>> MakeOpenClProbe(OpenClContext& context, double peak_gflops) {
  HONE_ASSIGN_OR_RETURN(Loops loops, Loops::Make(context, kLargestStream));
  HONE_ASSIGN_OR_RETURN(const int64_t iterations,
                        Sized(16, kMaxIterations, [&](int64_t n) { return loops.Fma(n); }));
  HONE_ASSIGN_OR_RETURN(const int64_t bytes,
                        Sized(std::min(kSmallestStream, loops.stream_bytes()), loops.stream_bytes(),
                              [&](int64_t n) { return loops.Stream(n); }));
  return std::make_unique<OpenClProbe>(std::move(loops), iterations, bytes, peak_gflops,
                                       context.is_cpu);
}

absl::StatusOr<Peak> MeasureOpenClPeak(OpenClContext& context) {
  // A stream that no cache holds.
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
