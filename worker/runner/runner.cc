#include "worker/runner/runner.h"

#include <omp.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/base/steady_clock.h"
#include "common/ir/workload_parser.h"
#include "common/target/caches.h"
#include "common/target/host.h"
#include "common/target/target.h"
#include "worker/runner/check.h"
#include "worker/runner/reference_loops.h"
#include "worker/runner/timing.h"

namespace hone::runner {
namespace {

using record::MeasureResult;
using record::Outcome;
using record::RunRequest;

constexpr absl::Duration kDefaultLimit = absl::Seconds(10);
constexpr absl::Duration kReferenceLimit = absl::Minutes(5);
// A kernel is not run completely if the estimate from a part of it exceeds the best by this factor
// and exceeds this time.
constexpr double kHopelessByPart = 10;
constexpr double kHopelessNs = 50e6;
// If a run on poisoned outputs takes this much longer than the timed runs, the timed runs left out
// work. Cold caches and a lost time slice cost less.
constexpr double kFakeFactor = 20;
constexpr double kFakeNs = 5e6;
constexpr int kFakeRuns = 12;  // at least, and for at least kFakeSearchNs
constexpr double kFakeSearchNs = 1e9;
constexpr int64_t kFlushedCount = 4;  // runs in a block when the caches are emptied before each

Outcome OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return Outcome::kInvalid;
    case absl::StatusCode::kFailedPrecondition:
      return Outcome::kCompileError;
    case absl::StatusCode::kResourceExhausted:
      return Outcome::kOutOfMemory;
    default:
      return Outcome::kDeviceLost;
  }
}

absl::Status KernelError(int32_t code) {
  switch (code) {
    case target::kKernelOk:
      return absl::OkStatus();
    case target::kKernelUnsupportedCpu:
      return absl::InvalidArgumentError("this CPU lacks a feature that the kernel was built for");
    case target::kKernelMisalignedBuffer:
      return absl::InvalidArgumentError("the kernel reports a misaligned buffer");
    default:
      return absl::InvalidArgumentError(absl::StrCat("the kernel returns ", code));
  }
}

// Returns the digest that names an artifact's file, or "" if the name is not a digest.
std::string DigestOfName(const std::string& artifact_path) {
  const std::string name = std::filesystem::path(artifact_path).filename();
  return Digest::FromHex(name).ok() ? name : "";
}

// Refuses unreasonable sizes of the memory that a kernel requests in addition to its buffers.
absl::Status CheckSize(absl::string_view what, int64_t bytes) {
  const int64_t limit = std::max<int64_t>(target::DescribeHost().memory_bytes / 2, 64 << 20);
  if (bytes < 0 || bytes > limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the kernel wants ", bytes, " bytes of ", what, "; at most ", limit));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<void*> Runner::Bench::Buffers(Filling filling) const {
  std::vector<void*> buffers;
  for (const auto& input : inputs[static_cast<int>(filling)]) buffers.push_back(input->data());
  for (const auto& output : outputs) buffers.push_back(output->data());
  return buffers;
}

Digest Runner::DigestOfInputs() const {
  DigestBuilder builder;
  for (const auto& input : bench_->inputs[static_cast<int>(Filling::kReal)]) {
    builder.Add(DigestOf(input->view()));
  }
  return builder.Finish();
}

absl::Status Runner::MakeReferenceData(const ir::Workload& workload, const RunRequest& request) {
  // Like a build, this may run at the same time as other work, but not during a timing.
  ReleaseLock();
  HONE_ASSIGN_OR_RETURN(
      const HostLock shared,
      HostLock::Acquire(HostLock::Mode::kShared, SteadyNow() + options_.lock_patience,
                        options_.lock_path));
  const auto deadline = options_.deadline(kReferenceLimit);
  std::unique_ptr<Kernel> kernel;
  if (!request.reference_path.empty()) {
    HONE_ASSIGN_OR_RETURN(kernel, LoadKernel(request.reference_path));
  }
  return MakeReference(workload, request.workload_digest, kernel.get(), request.reference_data);
}

absl::Status Runner::PrepareBench(const RunRequest& request) {
  if (bench_ != nullptr && bench_->digest == request.workload_digest) return absl::OkStatus();
  bench_ = nullptr;  // frees its memory first
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(request.workload));
  auto bench = std::make_unique<Bench>();
  bench->digest = request.workload_digest;
  bench->signature = SignatureOf(workload);
  const Signature& signature = bench->signature;
  auto reference = Reference::Open(request.reference_data, request.workload_digest, signature);
  if (!reference.ok()) {
    HONE_RETURN_IF_ERROR(MakeReferenceData(workload, request));
    reference = Reference::Open(request.reference_data, request.workload_digest, signature);
  }
  HONE_RETURN_IF_ERROR(reference.status());
  bench->reference = *std::move(reference);
  if (request.artifact_path.empty()) return absl::OkStatus();

  const uint64_t seed = InputSeed(request.workload_digest);
  Rng offsets(request.seed, 1);
  for (const Filling filling : {Filling::kReal, Filling::kInteger}) {
    auto& inputs = bench->inputs[static_cast<int>(filling)];
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      const TensorSpec& spec = signature.inputs[i];
      HONE_ASSIGN_OR_RETURN(inputs.emplace_back(), TensorMemory::Create(spec.bytes(), offsets()));
      FillTensor(spec, filling, seed, static_cast<int>(i), inputs[i]->data());
    }
  }
  bench->exact = true;
  for (size_t o = 0; o < signature.outputs.size(); ++o) {
    const TensorSpec& spec = signature.outputs[o];
    HONE_ASSIGN_OR_RETURN(bench->outputs.emplace_back(),
                          TensorMemory::Create(spec.bytes(), offsets()));
    const Expected expected = bench->reference->Of(Filling::kInteger, static_cast<int>(o));
    bench->exact = bench->exact && IsExact(spec, expected, signature);
  }
  bench_ = std::move(bench);
  bench_->input_digest = DigestOfInputs();
  return absl::OkStatus();
}

absl::Status Runner::TakeLock(double peak_gflops) {
  if (lock_.held()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(
      lock_, HostLock::Acquire(HostLock::Mode::kExclusive, SteadyNow() + options_.lock_patience,
                               options_.lock_path));
  if (probe_ == nullptr) {
    HONE_ASSIGN_OR_RETURN(probe_, CreateProbe(peak_gflops));
  }
  return absl::OkStatus();
}

bool Runner::CheckOutputs(Filling filling, double tolerance, MeasureResult& result) {
  const Signature& signature = bench_->signature;
  const auto wrong = [&](std::string detail) {
    result.outcome = Outcome::kWrongOutput;
    result.detail = std::move(detail);
    return false;
  };
  for (size_t o = 0; o < signature.outputs.size(); ++o) {
    const TensorSpec& spec = signature.outputs[o];
    if (const auto at = bench_->outputs[o]->WrittenOutside()) {
      return wrong(absl::StrFormat("the kernel writes outside of output %s, at byte %d of %d",
                                   spec.name, *at, spec.bytes()));
    }
    const Expected expected = bench_->reference->Of(filling, static_cast<int>(o));
    const void* const data = bench_->outputs[o]->data();
    const CheckResult check = filling == Filling::kReal
                                  ? CheckOutput(spec, data, expected, signature, tolerance)
                                  : CheckExact(spec, data, expected, signature);
    result.max_error = std::max(result.max_error, check.max_error);
    if (!check.ok) return wrong(check.detail);
  }
  const auto& inputs = bench_->inputs[static_cast<int>(filling)];
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->WrittenOutside()) {
      return wrong(absl::StrCat("the kernel writes outside of input ", signature.inputs[i].name));
    }
  }
  if (filling == Filling::kReal && DigestOfInputs() != bench_->input_digest) {
    bench_->digest.clear();  // the next candidate makes them again
    return wrong("the kernel changes its inputs");
  }
  return true;
}

absl::StatusOr<MeasureResult> Runner::Measure(const RunRequest& request) {
  HONE_RETURN_IF_ERROR(PrepareBench(request));
  MeasureResult result;
  if (request.artifact_path.empty()) return result;
  result.artifact_digest = DigestOfName(request.artifact_path);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, LoadKernel(request.artifact_path));
  HONE_RETURN_IF_ERROR(CheckSize("workspace", kernel->workspace_bytes()));
  HONE_RETURN_IF_ERROR(CheckSize("packed constants", kernel->packed_bytes()));
  if (workspace_ == nullptr ||
      static_cast<int64_t>(workspace_->bytes()) < kernel->workspace_bytes()) {
    workspace_ = nullptr;
    HONE_ASSIGN_OR_RETURN(workspace_,
                          TensorMemory::Create(kernel->workspace_bytes(), Rng(request.seed, 2)()));
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<TensorMemory> packed,
                        TensorMemory::Create(kernel->packed_bytes(), Rng(request.seed, 3)()));
  HONE_RETURN_IF_ERROR(TakeLock(request.peak_gflops));
  const int cores = omp_get_num_procs();
  omp_set_num_threads(request.policy.threads > 0 ? std::min(request.policy.threads, cores) : cores);
  const bool confirm = request.policy.name == "confirm";
  probe_->Sample();
  // The latency of the best candidate at the current speed of the machine.
  const double best_ns = request.best_latency_ns * probe_->Drift();
  const auto deadline = options_.deadline(
      request.time_limit_ms > 0 ? absl::Milliseconds(request.time_limit_ms) : kDefaultLimit);

  const auto prepack = [&](Filling filling) -> absl::Status {
    if (kernel->packed_bytes() == 0) return absl::OkStatus();
    return KernelError(kernel->Prepack(bench_->Buffers(filling).data(), packed->data()));
  };
  int32_t code = target::kKernelOk;
  // Runs once on poisoned memory. This shows elements that the kernel leaves out, and reads from a
  // workspace that it did not write.
  const auto poisoned_run = [&](Filling filling) -> absl::StatusOr<double> {
    for (const auto& output : bench_->outputs) output->Poison();
    workspace_->Poison();
    HONE_RETURN_IF_ERROR(prepack(filling));
    const std::vector<void*> buffers = bench_->Buffers(filling);
    const double begin = NowNs();
    code = kernel->Run(buffers.data(), packed->data(), workspace_->data());
    const double elapsed = NowNs() - begin;
    HONE_RETURN_IF_ERROR(KernelError(code));
    return elapsed;
  };

  const std::vector<void*> buffers = bench_->Buffers(Filling::kReal);
  if (!confirm && best_ns > 0 && kernel->range_extent() > 1) {
    HONE_RETURN_IF_ERROR(prepack(Filling::kReal));
    double part_ns = INFINITY;
    for (const int64_t at : {int64_t{0}, kernel->range_extent() / 2}) {
      const double begin = NowNs();
      code = kernel->Range(buffers.data(), packed->data(), workspace_->data(), at, at + 1);
      part_ns = std::min(part_ns, NowNs() - begin);
      HONE_RETURN_IF_ERROR(KernelError(code));
    }
    const int threads = omp_get_max_threads();
    const double rounds = static_cast<double>((kernel->range_extent() + threads - 1) / threads);
    const double whole_ns = part_ns * rounds;
    if (whole_ns > kHopelessByPart * best_ns && whole_ns > kHopelessNs) {
      result.stopped_early = true;
      result.latency_ns = whole_ns;
      result.reference_drift = probe_->Drift();
      result.samples_ns = {whole_ns};
      result.detail = "judged on a part of its range; its output was not checked";
      return result;
    }
  }

  const int64_t preemptions = probe_->Preemptions();
  HONE_ASSIGN_OR_RETURN(const double first_ns, poisoned_run(Filling::kReal));
  const int64_t first_preemptions = probe_->Preemptions() - preemptions;
  if (!CheckOutputs(Filling::kReal, request.tolerance, result)) return result;
  const bool hopeless = !confirm && best_ns > 0 && first_ns > 4 * best_ns;
  if (bench_->exact && request.tolerance == 0 && !hopeless) {
    HONE_RETURN_IF_ERROR(poisoned_run(Filling::kInteger).status());
    if (!CheckOutputs(Filling::kInteger, 0, result)) return result;
    HONE_RETURN_IF_ERROR(prepack(Filling::kReal));
  }

  const bool flushed = request.policy.cache == "flushed";
  if (flushed && flush_ == nullptr) {
    const target::Target host = target::DetectHost();
    const int64_t caches = host.l2_bytes * cores + target::ReachableL3Bytes(host);
    const int64_t bytes = std::max<int64_t>(2 * caches, 16 << 20);
    HONE_ASSIGN_OR_RETURN(flush_, TensorMemory::Create(bytes / 4096 * 4096, 0));
  }
  volatile uint64_t sink = 0;
  const auto timed = [&](int64_t count) {
    double total = 0;
    const double block_begin = NowNs();
    for (int64_t i = 0; i < count; ++i) {
      if (flushed) sink = RunStream(flush_->data(), flush_->bytes());
      const double begin = flushed ? NowNs() : 0;
      code |= kernel->Run(buffers.data(), packed->data(), workspace_->data());
      if (flushed) total += NowNs() - begin;
    }
    return flushed ? total : NowNs() - block_begin;
  };
  if (options_.monitor != nullptr) options_.monitor->Look();
  const Timing timing =
      TimeKernel(first_ns, timed, *probe_,
                 {.confirm = confirm,
                  .best_latency_ns = request.best_latency_ns,
                  .first_preemptions = first_preemptions,
                  .min_blocks = request.policy.repeats,
                  .max_count = flushed ? kFlushedCount : std::numeric_limits<int64_t>::max()});
  HONE_RETURN_IF_ERROR(KernelError(code));
  if (options_.monitor != nullptr) {
    const MachineMonitor::State machine = options_.monitor->Look();
    result.machine = {.frequency_mhz = machine.frequency_mhz,
                      .temperature_c = machine.temperature_c,
                      .load = machine.load,
                      .steal = machine.steal};
  }
  result.machine.remeasured = timing.remeasured;
  // A possible best is checked again, because a kernel could do its work in the first run only.
  if (confirm || best_ns == 0 || timing.latency_ns < best_ns) {
    // Uses the smallest sample, because the first run, on poisoned outputs, may be one of few.
    const double timed_ns = *std::min_element(timing.samples_ns.begin(), timing.samples_ns.end());
    const double most_ns = kFakeFactor * timed_ns + kFakeNs;
    double again_ns = INFINITY;
    // One fast run proves that the kernel can do it; an overloaded machine slows dozens of runs in
    // a row.
    const double begin = NowNs();
    for (int run = 0; again_ns > most_ns && (run < kFakeRuns || NowNs() - begin < kFakeSearchNs);
         ++run) {
      HONE_ASSIGN_OR_RETURN(const double run_ns, poisoned_run(Filling::kReal));
      if (!CheckOutputs(Filling::kReal, request.tolerance, result)) return result;
      again_ns = std::min(again_ns, run_ns);
      if (flushed) break;
    }
    if (!flushed && again_ns > most_ns) {
      result.outcome = Outcome::kWrongOutput;
      result.detail = absl::StrFormat(
          "the kernel takes %.0f ns when its outputs do not contain the results yet, but %.0f ns "
          "when they do",
          again_ns, timed_ns);
      return result;
    }
  }
  result.samples_ns = timing.samples_ns;
  result.latency_ns = timing.latency_ns;
  result.dispersion = timing.dispersion;
  result.reference_drift = timing.drift;
  result.stopped_early = timing.stopped_early;
  return result;
}

MeasureResult Runner::Run(const RunRequest& request) {
  absl::StatusOr<MeasureResult> result = Measure(request);
  if (result.ok()) return *std::move(result);
  MeasureResult failed;
  failed.outcome = OutcomeOf(result.status());
  failed.detail = std::string(result.status().message());
  failed.artifact_digest = DigestOfName(request.artifact_path);
  return failed;
}

}  // namespace hone::runner
