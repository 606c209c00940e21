#include "worker/runner/gpu_probe.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/target/gpu_module.h"
#include "worker/runner/gpu_device.h"
#include "worker/runner/limits.h"
#include "worker/runner/peak.h"

namespace hone::runner {
namespace {

// Kernels that every device can run, for probes and peaks. The first launch, "hone_fma", runs
// `amount` times kFmaChains multiply-adds of vectors of `lanes` floats in each thread. The second
// one, "hone_stream", reads `amount` elements of 16 bytes. The parameters of both are a buffer for
// 16 bytes of each thread, the buffer that is read, and `amount`. The third launch is one thread of
// "hone_fma".
constexpr int kFmaChains = 8;
struct ReferenceKernels {
  std::string code;
  int lanes = 4;
};

// %r3 is the thread's number in the grid, %r4 the number of threads, %rd3 where it writes.
constexpr char kCudaText[] = R"(.version 6.4
.target sm_75
.address_size 64

.visible .entry hone_fma(.param .u64 out, .param .u64 in, .param .u32 amount)
{
  .reg .pred %p;
  .reg .b32 %r<8>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<@REGISTERS@>;
  .reg .f32 %x, %y;
@INDEX@  mov.f32 %x, 0f3F7FBE77;
  mov.f32 %y, 0f3A83126F;
@STARTS@  mov.u32 %r6, 0;
LOOP:
  setp.ge.s32 %p, %r6, %r5;
  @%p bra DONE;
@MULTIPLY_ADDS@  add.s32 %r6, %r6, 1;
  bra LOOP;
DONE:
@SUMS@  st.global.v4.f32 [%rd3], {%f0, %f1, %f2, %f3};
  ret;
}

.visible .entry hone_stream(.param .u64 out, .param .u64 in, .param .u32 amount)
{
  .reg .pred %p;
  .reg .b32 %r<16>;
  .reg .b64 %rd<8>;
  .reg .f32 %f<4>;
@INDEX@  ld.param.u64 %rd4, [in];
  cvta.to.global.u64 %rd4, %rd4;
  mov.u32 %r6, %r3;
  mov.u32 %r8, 0;
  mov.u32 %r9, 0;
  mov.u32 %r10, 0;
  mov.u32 %r11, 0;
LOOP:
  setp.ge.s32 %p, %r6, %r5;
  @%p bra DONE;
  mul.wide.u32 %rd5, %r6, 16;
  add.s64 %rd5, %rd4, %rd5;
  ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd5];
  xor.b32 %r8, %r8, %r12;
  xor.b32 %r9, %r9, %r13;
  xor.b32 %r10, %r10, %r14;
  xor.b32 %r11, %r11, %r15;
  add.s32 %r6, %r6, %r4;
  bra LOOP;
DONE:
  st.global.v4.u32 [%rd3], {%r8, %r9, %r10, %r11};
  ret;
}
)";

constexpr char kCudaIndex[] = R"(  mov.u32 %r0, %ctaid.x;
  mov.u32 %r1, %ntid.x;
  mov.u32 %r2, %tid.x;
  mad.lo.s32 %r3, %r0, %r1, %r2;
  mov.u32 %r4, %nctaid.x;
  mul.lo.s32 %r4, %r4, %r1;
  ld.param.u32 %r5, [amount];
  ld.param.u64 %rd1, [out];
  cvta.to.global.u64 %rd1, %rd1;
  mul.wide.u32 %rd2, %r3, 16;
  add.s64 %rd3, %rd1, %rd2;
)";

// Eight independent chains of LANES lanes hide the latency of multiply-adds. The threads of a block
// read parts of the stream: next to each other on a GPU, one after the other on a CPU.
constexpr char kReferenceKernels[] = R"(
#define FLOATS_(n) float##n
#define FLOATS(n) FLOATS_(n)
#ifdef FP_FAST_FMAF
#define MULTIPLY_ADD fma
#else
#define MULTIPLY_ADD mad
#endif
typedef FLOATS(LANES) floats;
kernel void hone_fma(global float4* out, global const uint4* in, int amount) {
  floats a = (floats)(get_local_id(0)), b = a + 1, c = a + 2, d = a + 3;
  floats e = a + 4, f = a + 5, g = a + 6, h = a + 7;
  const floats x = (floats)(0.999f), y = (floats)(0.001f);
  for (int i = 0; i < amount; ++i) {
    a = MULTIPLY_ADD(a, x, y); b = MULTIPLY_ADD(b, x, y); c = MULTIPLY_ADD(c, x, y); d = MULTIPLY_ADD(d, x, y);
    e = MULTIPLY_ADD(e, x, y); f = MULTIPLY_ADD(f, x, y); g = MULTIPLY_ADD(g, x, y); h = MULTIPLY_ADD(h, x, y);
  }
  const floats sum = a + b + c + d + e + f + g + h;
  out[get_global_id(0)] = vload4(0, (const private float*)&sum);
}
kernel void hone_stream(global float4* out, global const uint4* in, int amount) {
  uint4 sum = (uint4)(0);
#if IN_TURN
  const int part = amount / get_global_size(0), begin = get_global_id(0) * part;
  for (int i = begin; i < begin + part; ++i) sum ^= in[i];
#else
  for (int i = get_global_id(0); i < amount; i += get_global_size(0)) sum ^= in[i];
#endif
  out[get_global_id(0)] = convert_float4(sum);
}
)";

// Returns PTX for Turing and newer, which the driver compiles for its device. The runner has no
// compiler for CUDA C++.
ReferenceKernels CudaReferenceKernels() {
  constexpr int kLanes = 4;
  std::string starts, multiply_adds, sums;
  for (int i = 0; i < kLanes * kFmaChains; ++i) {
    // Each chain starts with another value, because a compiler may merge equal computations.
    absl::StrAppend(&starts, "  add.s32 %r7, %r2, ", i, ";\n  cvt.rn.f32.s32 %f", i, ", %r7;\n");
    absl::StrAppend(&multiply_adds, "  fma.rn.f32 %f", i, ", %f", i, ", %x, %y;\n");
    if (i < kLanes) continue;
    const int lane = i % kLanes;
    absl::StrAppend(&sums, "  add.f32 %f", lane, ", %f", lane, ", %f", i, ";\n");
  }
  return {absl::StrReplaceAll(kCudaText, {{"@REGISTERS@", absl::StrCat(kLanes * kFmaChains)},
                                          {"@INDEX@", kCudaIndex},
                                          {"@STARTS@", starts},
                                          {"@MULTIPLY_ADDS@", multiply_adds},
                                          {"@SUMS@", sums}}),
          kLanes};
}

// Returns the source for a device, which may be a CPU.
ReferenceKernels OpenClReferenceKernels(bool is_cpu) {
  const int lanes = is_cpu ? 16 : 4;
  return {absl::StrCat("#define LANES ", lanes, "\n#define IN_TURN ", is_cpu ? 1 : 0, "\n",
                       kReferenceKernels),
          lanes};
}

constexpr int64_t kVectorBytes = 16;
constexpr int64_t kThreads = 64;       // per block
constexpr int64_t kBlocksOfUnit = 16;  // enough threads to keep a compute unit busy
constexpr double kSampleNs = 2e5;
constexpr int64_t kMaxIterations = 1 << 24;
constexpr int64_t kSmallestStream = 1 << 20, kLargestStream = 64 << 20;
constexpr int kCalibrationSamples = 24;
constexpr int kPeakRounds = 8;
constexpr int64_t kLaunches = 32;
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
    module.launches.push_back({.kernel = "hone_fma"});
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
  // Of kLaunches launches in a row that compute nothing.
  absl::StatusOr<double> Launches() const { return Run(kEmpty, 0, kLaunches); }

 private:
  static constexpr size_t kFma = 0, kStream = 1, kEmpty = 2;  // launches

  explicit Loops(target::GpuContext& context) : context_(context) {}

  int64_t block() const {
    return std::min({kThreads, context_.max_threads, context_.max_block[0]});
  }
  int64_t threads() const { return context_.units * kBlocksOfUnit * block(); }

  absl::StatusOr<double> Run(size_t launch, int64_t amount, int64_t count = 1) const {
    const target::GpuArgument arguments[] = {out_->memory(), in_->memory(),
                                             static_cast<int32_t>(amount)};
    HONE_RETURN_IF_ERROR(program_->SetArguments(launch, arguments));
    return program_->Run({&launch, 1}, count);
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
    return times_.Add(*fma, *stream,
                      peak_gflops_ > 0 ? loops_.Flops(iterations_) / peak_gflops_ : 0);
  }

  double Drift() const override { return times_.drift(); }

  // Threads of a GPU do not compete with other processes for cores.
  std::vector<double> WaitedNs() const override {
    return is_cpu_ ? WaitedBySwitchesNs() : std::vector<double>();
  }

  double ProcessorNs() const override { return is_cpu_ ? ProcessorTimeNs() : NowNs(); }

 private:
  const Loops loops_;
  const int64_t iterations_;
  const int64_t bytes_;
  const double peak_gflops_;
  const bool is_cpu_;
  ProbeTimes times_;
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
  double stream = INFINITY, launches = INFINITY;
  std::array<double, kPeakRounds> rounds;
  for (double& fma_ns : rounds) {
    HONE_ASSIGN_OR_RETURN(fma_ns, loops.Fma(8 * iterations));
    HONE_ASSIGN_OR_RETURN(const double stream_ns, loops.Stream(loops.stream_bytes()));
    HONE_ASSIGN_OR_RETURN(const double launches_ns, loops.Launches());
    stream = std::min(stream, stream_ns);
    launches = std::min(launches, launches_ns);
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
  if (context.kind() == target::Kind::kOpenCl) {
    constexpr double kFmaFloats = 32, kLine = 64;  // of target::Calibration
    target::Calibration measured{.fma = 2 * kFmaFloats * context.units / gflops,
                                 .memory_shared_line = kLine / gbps,
                                 .launch = launches / kLaunches};
    measured.RemoveImpossible();
    peak.calibration = measured.ToText();
  }
  return peak;
}

}  // namespace hone::runner
