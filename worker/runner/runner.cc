#include "worker/runner/runner.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/clock.h"
#include "common/base/digest.h"
#include "common/base/rng.h"
#include "common/base/seconds_text.h"
#include "common/base/sha256.h"
#include "common/base/status_macros.h"
#include "common/ir/workload_parser.h"
#include "common/record/origin.h"
#include "worker/runner/check.h"
#include "worker/runner/kernel.h"
#include "worker/runner/peak.h"
#include "worker/runner/timing.h"

namespace hone::runner {
namespace {

using record::MeasureResult;
using record::Outcome;
using record::RunRequest;

constexpr absl::Duration kDefaultLimit = absl::Seconds(10);
constexpr absl::Duration kReferenceLimit = absl::Minutes(5);
// Longer than the pauses of a process that waits for the timing lock (FileLock::Lock).
constexpr absl::Duration kLockPause = absl::Milliseconds(12);
// A kernel is not run completely if the estimate from a part of it exceeds the best by this factor
// and exceeds this time.
constexpr double kHopelessByPart = 10;
constexpr double kHopelessNs = 50e6;
// If a run on poisoned outputs takes this many times as long as a run on outputs that contain the
// results, the kernel skips work in the latter. Cold caches and a lost time slice cost less.
constexpr double kFakeFactor = 20;
constexpr double kFakeNs = 5e6;
constexpr int kFakeRuns = 12;  // minimum number of runs; they also go on for at least kFakeSearchNs
constexpr double kFakeSearchNs = 1e9;
constexpr int64_t kFlushedCount = 4;    // runs in a block when the caches are emptied before each
constexpr char kFlushed[] = "flushed";  // a policy's cache state

Outcome OutcomeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      return Outcome::kInvalid;
    case absl::StatusCode::kFailedPrecondition:
      return Outcome::kCompileError;
    case absl::StatusCode::kResourceExhausted:
      return Outcome::kOutOfMemory;
    case absl::StatusCode::kAborted:
      return Outcome::kCrash;
    default:
      return Outcome::kDeviceLost;
  }
}

// Returns the digest that names an artifact's file, or "" if the name is not a digest.
std::string DigestOfName(const std::string& artifact_path) {
  const std::string name = std::filesystem::path(artifact_path).filename();
  return IsSha256(name) ? name : "";
}

}  // namespace

std::vector<DeviceBuffer*> Runner::Bench::Buffers(Filling filling) const {
  std::vector<DeviceBuffer*> buffers;
  for (const auto& input : inputs[static_cast<int>(filling)]) buffers.push_back(input.get());
  for (const auto& output : outputs) buffers.push_back(output.get());
  return buffers;
}

absl::StatusOr<Digest> Runner::DigestOfInputs() {
  DigestBuilder builder;
  for (const auto& input : bench_->inputs[static_cast<int>(Filling::kReal)]) {
    HONE_ASSIGN_OR_RETURN(const void* const data, input->Read());
    builder.Add(DigestOf(absl::string_view(static_cast<const char*>(data), input->bytes())));
  }
  return builder.Finish();
}

absl::Status Runner::MakeReferenceData(const ir::Workload& workload, const Inputs& inputs,
                                       const RunRequest& request) {
  // Like a build, this may run at the same time as other work, but not during a timing.
  ReleaseLock();
  HONE_ASSIGN_OR_RETURN(
      HostLock shared, HostLock::Acquire(HostLock::Mode::kShared,
                                         SteadyNow() + options_.lock_patience, options_.lock_path));
  auto deadline = options_.deadline(kReferenceLimit);
  // What the computation has taken before its current turn, without waiting for the lock.
  absl::Duration taken;
  absl::Duration waited;  // before the current turn
  absl::Time turn_begin = SteadyNow();
  const auto give_way = [&]() -> absl::Status {
    const absl::Duration turn = SteadyNow() - turn_begin;
    // A turn is as long as the wait before it, so that waits do not take longer than the rest.
    if (turn < std::max(options_.reference_turn, waited)) return absl::OkStatus();
    taken += turn;
    if (taken >= kReferenceLimit) {
      return absl::DeadlineExceededError(
          absl::StrCat("the reference was not computed within ", SecondsText(kReferenceLimit)));
    }
    deadline.reset();
    const absl::Time wait_begin = SteadyNow();
    HONE_RETURN_IF_ERROR(shared.YieldToTimers(wait_begin + options_.lock_patience));
    turn_begin = SteadyNow();
    waited = turn_begin - wait_begin;
    deadline = options_.deadline(kReferenceLimit - taken);
    return absl::OkStatus();
  };
  std::unique_ptr<Kernel> kernel;
  if (!request.reference_path.empty()) {
    HONE_ASSIGN_OR_RETURN(kernel, LoadKernel(request.reference_path));
  }
  return MakeReference(workload, inputs, kernel.get(), request.reference_data,
                       options_.whole_reference_bytes, give_way);
}

absl::Status Runner::CheckMemory(const Signature& signature) const {
  int64_t bytes = ReferenceBytes(signature);
  if (bytes > options_.whole_reference_bytes) bytes = 0;  // a sampled one takes few
  for (const TensorSpec& input : signature.inputs) bytes += 2 * input.bytes();  // two fillings
  for (const TensorSpec& output : signature.outputs) bytes += output.bytes();
  bytes = std::max(bytes, BytesToMakeReference(signature, options_.whole_reference_bytes));
  if (options_.memory_bytes <= 0 || bytes <= options_.memory_bytes) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the workload's tensors and their reference need %d MiB, and kernels may use %d MiB on this "
      "machine; tune it on a machine with more memory",
      bytes >> 20, options_.memory_bytes >> 20));
}

absl::Status Runner::PrepareBench(const RunRequest& request) {
  const std::string key = record::ReferenceKey(request.workload_digest, request.inputs_digest);
  if (bench_ != nullptr && bench_->key == key) return absl::OkStatus();
  bench_ = nullptr;  // frees its memory first
  HONE_ASSIGN_OR_RETURN(const ir::Workload workload, ir::ParseWorkload(request.workload));
  auto bench = std::make_unique<Bench>();
  bench->key = key;
  bench->signature = SignatureOf(workload, options_.device->error_of());
  const Signature& signature = bench->signature;
  HONE_RETURN_IF_ERROR(CheckMemory(signature));
  Inputs inputs = Inputs::Seeded(request.workload_digest);
  if (!request.inputs_digest.empty()) {
    HONE_ASSIGN_OR_RETURN(inputs, Inputs::Given(request.workload_digest, request.inputs_digest,
                                                request.inputs_path, signature));
  }
  bench->inputs_name = inputs.name();
  auto reference = Reference::Open(request.reference_data, key, signature);
  if (!reference.ok()) {
    HONE_RETURN_IF_ERROR(MakeReferenceData(workload, inputs, request));
    reference = Reference::Open(request.reference_data, key, signature);
  }
  HONE_RETURN_IF_ERROR(reference.status());
  bench->reference = *std::move(reference);
  if (request.artifact_path.empty()) return absl::OkStatus();

  Rng offsets(request.seed, 1);
  for (const Filling filling : {Filling::kReal, Filling::kInteger}) {
    auto& buffers = bench->inputs[static_cast<int>(filling)];
    for (size_t i = 0; i < signature.inputs.size(); ++i) {
      HONE_ASSIGN_OR_RETURN(buffers.emplace_back(),
                            options_.device->Allocate(signature.inputs[i].bytes(), offsets()));
      HONE_RETURN_IF_ERROR(buffers[i]->Write(
          [&](void* data) { inputs.Fill(signature, filling, static_cast<int>(i), data); }));
    }
  }
  bench->exact = true;
  for (size_t o = 0; o < signature.outputs.size(); ++o) {
    const TensorSpec& spec = signature.outputs[o];
    HONE_ASSIGN_OR_RETURN(bench->outputs.emplace_back(),
                          options_.device->Allocate(spec.bytes(), offsets()));
    const Expected expected = bench->reference->Of(Filling::kInteger, static_cast<int>(o));
    bench->exact = bench->exact && IsExact(spec, expected, signature);
  }
  bench_ = std::move(bench);
  HONE_ASSIGN_OR_RETURN(bench_->input_digest, DigestOfInputs());
  return absl::OkStatus();
}

absl::Status Runner::TakeLock(double peak_gflops) {
  if (lock_.held() && SteadyNow() < turn_end_) return absl::OkStatus();
  if (lock_.held()) {
    ReleaseLock();
    options_.sleep(kLockPause);
  }
  HONE_RETURN_IF_ERROR(lock_.Acquire(options_.lock_path, options_.device->own_lock(),
                                     SteadyNow() + options_.lock_patience));
  turn_end_ = SteadyNow() + options_.lock_turn;
  if (probe_ == nullptr) {
    HONE_ASSIGN_OR_RETURN(probe_, options_.device->MakeProbe(peak_gflops));
  }
  return absl::OkStatus();
}

bool Runner::IsWrong(std::string detail, MeasureResult& result) {
  result.outcome = Outcome::kWrongOutput;
  result.detail = std::move(detail);
  // The kernel may have changed anything, so the next candidate gets new buffers.
  bench_->key.clear();
  return false;
}

absl::StatusOr<bool> Runner::CheckWrites(DeviceKernel& kernel, Filling filling,
                                         MeasureResult& result) {
  HONE_ASSIGN_OR_RETURN(std::string own, kernel.WrittenOutside());
  if (!own.empty()) return IsWrong(std::move(own), result);
  const auto check_canaries = [&](DeviceBuffer& buffer, absl::string_view kind,
                                  const TensorSpec& spec) -> absl::StatusOr<bool> {
    HONE_ASSIGN_OR_RETURN(const std::optional<int64_t> outside, buffer.WrittenOutside());
    if (!outside.has_value()) return true;
    return IsWrong(DescribeWriteOutside(absl::StrCat(kind, " ", spec.name), *outside, spec.bytes()),
                   result);
  };
  const Signature& signature = bench_->signature;
  for (size_t o = 0; o < signature.outputs.size(); ++o) {
    HONE_ASSIGN_OR_RETURN(const bool intact,
                          check_canaries(*bench_->outputs[o], "output", signature.outputs[o]));
    if (!intact) return false;
  }
  const auto& inputs = bench_->inputs[static_cast<int>(filling)];
  for (size_t i = 0; i < inputs.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(const bool intact,
                          check_canaries(*inputs[i], "input", signature.inputs[i]));
    if (!intact) return false;
  }
  if (filling != Filling::kReal) return true;
  HONE_ASSIGN_OR_RETURN(const Digest inputs_now, DigestOfInputs());
  if (inputs_now == bench_->input_digest) return true;
  return IsWrong("the kernel changes its inputs", result);
}

absl::StatusOr<bool> Runner::CheckOutputs(DeviceKernel& kernel, Filling filling, double tolerance,
                                          MeasureResult& result) {
  HONE_ASSIGN_OR_RETURN(const bool contained, CheckWrites(kernel, filling, result));
  if (!contained) return false;
  const Signature& signature = bench_->signature;
  for (size_t o = 0; o < signature.outputs.size(); ++o) {
    const TensorSpec& spec = signature.outputs[o];
    const Expected expected = bench_->reference->Of(filling, static_cast<int>(o));
    HONE_ASSIGN_OR_RETURN(const void* const data, bench_->outputs[o]->Read());
    CheckResult check = filling == Filling::kReal
                            ? CheckOutput(spec, data, expected, signature, tolerance)
                            : CheckExact(spec, data, expected, signature);
    if (check.ok && expected.positions != nullptr) {
      const double max_error = check.max_error;
      check = CheckWritten(spec, data, expected);
      check.max_error = std::max(check.max_error, max_error);
    }
    result.max_error = std::max(result.max_error, check.max_error);
    if (!check.ok) return IsWrong(check.detail, result);
  }
  return true;
}

absl::StatusOr<double> Runner::RunPoisoned(DeviceKernel& kernel, Filling filling) {
  for (const auto& output : bench_->outputs) HONE_RETURN_IF_ERROR(output->Poison());
  HONE_RETURN_IF_ERROR(kernel.PoisonWorkspace());
  const std::vector<DeviceBuffer*> buffers = bench_->Buffers(filling);
  HONE_RETURN_IF_ERROR(kernel.Prepack(buffers));
  return kernel.Run(buffers, 1, /*flushed=*/false);
}

absl::StatusOr<bool> Runner::IsHopelessByPart(DeviceKernel& kernel, double best_ns,
                                              MeasureResult& result) {
  if (best_ns <= 0 || kernel.parts() <= 1) return false;
  const std::vector<DeviceBuffer*> buffers = bench_->Buffers(Filling::kReal);
  HONE_RETURN_IF_ERROR(kernel.Prepack(buffers));
  double part_ns = INFINITY;
  for (const int64_t at : {int64_t{0}, kernel.parts() / 2}) {
    HONE_ASSIGN_OR_RETURN(const double ns, kernel.RunPart(buffers, at, at + 1));
    part_ns = std::min(part_ns, ns);
  }
  const int at_once = options_.device->concurrency();
  const double whole_ns = part_ns * static_cast<double>((kernel.parts() + at_once - 1) / at_once);
  if (whole_ns <= kHopelessByPart * best_ns || whole_ns <= kHopelessNs) return false;
  // A part may write outside its buffers, too. The next candidate must not be blamed for it.
  HONE_ASSIGN_OR_RETURN(const bool contained, CheckWrites(kernel, Filling::kReal, result));
  if (!contained) return true;
  result.stopped_early = true;
  result.latency_ns = whole_ns;
  result.reference_drift = probe_->Drift();
  result.samples_ns = {whole_ns};
  result.detail = absl::StrCat("the latency is estimated from a part of the range; ",
                               record::kOutputNotChecked);
  return true;
}

absl::StatusOr<bool> Runner::CheckAgain(DeviceKernel& kernel, const RunRequest& request,
                                        double timed_ns, MeasureResult& result) {
  const bool flushed = request.policy.cache == kFlushed;
  const double most_ns = kFakeFactor * timed_ns + kFakeNs;
  double again_ns = INFINITY;
  double control_ns = INFINITY;  // of single runs whose outputs contain the results
  int runs = 0, fast_controls = 0;
  // One fast run on poisoned outputs proves that the kernel skips no work. On an overloaded
  // machine, each single run may wait a time slice for its threads, while timed runs follow each
  // other and keep them. So single runs are compared with single runs: if at least half of those
  // with results are fast, it is no accident that none of the others is.
  const double begin = NowNs();
  for (; runs < kFakeRuns || NowNs() - begin < kFakeSearchNs; ++runs) {
    const double poison_begin = NowNs();
    HONE_ASSIGN_OR_RETURN(const double run_ns, RunPoisoned(kernel, Filling::kReal));
    const double pause_ns = NowNs() - poison_begin - run_ns;
    HONE_ASSIGN_OR_RETURN(const bool right,
                          CheckOutputs(kernel, Filling::kReal, request.tolerance, result));
    if (!right) return false;
    if (flushed) return true;
    again_ns = std::min(again_ns, run_ns);
    if (again_ns <= most_ns) return true;
    // Poisoning takes time, and threads that wait for long fall asleep. The kernel cannot see that
    // nothing is poisoned in the same time.
    for (const double end = NowNs() + pause_ns; NowNs() < end;) {
    }
    HONE_ASSIGN_OR_RETURN(const double repeated_ns,
                          kernel.Run(bench_->Buffers(Filling::kReal), 1, /*flushed=*/false));
    control_ns = std::min(control_ns, repeated_ns);
    fast_controls += repeated_ns <= most_ns;
  }
  if (2 * fast_controls < runs) return true;
  result.outcome = Outcome::kWrongOutput;
  result.detail = absl::StrFormat(
      "the kernel takes %.0f ns when its outputs do not contain the results yet, but %.0f ns when "
      "they do",
      again_ns, std::min(timed_ns, control_ns));
  return false;
}

absl::StatusOr<std::string> Runner::CountRuns(DeviceKernel& kernel, double latency_ns) {
  const double least_ns = absl::ToDoubleNanoseconds(options_.counters->least_time());
  const auto runs = static_cast<int64_t>(std::ceil(least_ns / std::max(latency_ns, 1.0)));
  options_.counters->Begin();
  const absl::StatusOr<double> ns =
      kernel.Run(bench_->Buffers(Filling::kReal), runs, /*flushed=*/false);
  std::vector<record::Counter> counters = options_.counters->End();
  HONE_RETURN_IF_ERROR(ns.status());
  counters.insert(counters.begin(), {.name = record::kWallNs, .value = *ns});
  for (record::Counter& counter : counters) counter.value /= static_cast<double>(runs);
  return record::CountersText(counters);
}

absl::StatusOr<MeasureResult> Runner::Measure(const RunRequest& request) {
  HONE_RETURN_IF_ERROR(PrepareBench(request));
  MeasureResult result;
  result.inputs = bench_ != nullptr ? bench_->inputs_name : "";
  if (request.artifact_path.empty()) return result;
  result.artifact_digest = DigestOfName(request.artifact_path);
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<DeviceKernel> kernel,
                        options_.device->Load(request.artifact_path, Rng(request.seed, 2)()));
  HONE_RETURN_IF_ERROR(TakeLock(request.peak_gflops));
  const bool flushed = request.policy.cache == kFlushed;
  HONE_RETURN_IF_ERROR(options_.device->PrepareTiming(request.policy.threads, flushed));
  const bool confirm = request.policy.name == "confirm";
  std::string throttled;
  if (options_.throttle != nullptr) {
    throttled = PauseWhileThrottled(*options_.throttle, options_.throttle_patience, options_.sleep);
  }
  probe_->Sample();
  // The latency of the best candidate at the current speed of the machine.
  const double best_ns = request.best_latency_ns * probe_->Drift();
  const auto deadline = options_.deadline(
      request.time_limit_ms > 0 ? absl::Milliseconds(request.time_limit_ms) : kDefaultLimit);
  if (!confirm) {
    HONE_ASSIGN_OR_RETURN(const bool hopeless, IsHopelessByPart(*kernel, best_ns, result));
    if (hopeless) return result;
  }

  const std::vector<double> waited_ns = probe_->WaitedNs();
  HONE_ASSIGN_OR_RETURN(const double first_ns, RunPoisoned(*kernel, Filling::kReal));
  const double first_waited_ns = LongestWaitNs(waited_ns, probe_->WaitedNs());
  HONE_ASSIGN_OR_RETURN(bool right,
                        CheckOutputs(*kernel, Filling::kReal, request.tolerance, result));
  if (!right) return result;
  const std::vector<DeviceBuffer*> buffers = bench_->Buffers(Filling::kReal);
  const bool hopeless = !confirm && best_ns > 0 && first_ns > 4 * best_ns;
  if (bench_->exact && request.tolerance == 0 && !hopeless) {
    HONE_RETURN_IF_ERROR(RunPoisoned(*kernel, Filling::kInteger).status());
    HONE_ASSIGN_OR_RETURN(right, CheckOutputs(*kernel, Filling::kInteger, 0, result));
    if (!right) return result;
    HONE_RETURN_IF_ERROR(kernel->Prepack(buffers));
  }

  absl::Status failure;
  const auto timed = [&](int64_t count) {
    const absl::StatusOr<double> ns = kernel->Run(buffers, count, flushed);
    failure.Update(ns.status());
    return ns.value_or(INFINITY);
  };
  if (options_.monitor != nullptr) options_.monitor->Look();
  const TimingOptions timing_options{
      .confirm = confirm,
      .best_latency_ns = request.best_latency_ns,
      .first_waited_ns = first_waited_ns,
      .min_blocks = request.policy.repeats,
      .max_count = flushed ? kFlushedCount : std::numeric_limits<int64_t>::max()};
  const Timing timing = TimeKernel(first_ns, timed, *probe_, timing_options);
  HONE_RETURN_IF_ERROR(failure);
  if (options_.monitor != nullptr) result.machine = options_.monitor->Look();
  options_.device->Observe(result.machine);
  result.machine.remeasured = timing.remeasured;
  // Emptying the caches would be counted, too.
  if (confirm && !timing_options.IsBrief() && !flushed && options_.counters != nullptr) {
    HONE_ASSIGN_OR_RETURN(result.counters, CountRuns(*kernel, timing.latency_ns));
  }
  if (confirm || best_ns == 0 || timing.latency_ns < best_ns) {
    // Uses the smallest sample, because the first run, on poisoned outputs, may be one of few.
    const double timed_ns = *std::min_element(timing.samples_ns.begin(), timing.samples_ns.end());
    HONE_ASSIGN_OR_RETURN(right, CheckAgain(*kernel, request, timed_ns, result));
  } else {
    HONE_ASSIGN_OR_RETURN(right, CheckWrites(*kernel, Filling::kReal, result));
  }
  if (!right) return result;
  result.samples_ns = timing.samples_ns;
  result.latency_ns = timing.latency_ns;
  result.dispersion = timing.dispersion;
  result.reference_drift = timing.drift;
  result.stopped_early = timing.stopped_early;
  result.detail = bench_->reference->sampled();
  if (!throttled.empty()) {
    absl::StrAppend(&result.detail, result.detail.empty() ? "" : "; ",
                    "timed after a pause: ", throttled);
  }
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
