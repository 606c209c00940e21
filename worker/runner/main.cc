// hone-runner: loads, checks and times kernels that the agent names on standard input (RunRequest),
// and answers on standard output (RunResponse), one at a time. See --help.
#include <signal.h>
#include <sys/prctl.h>
#include <sysexits.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/command_line.h"
#include "common/base/host_lock.h"
#include "common/base/seconds_text.h"
#include "common/record/artifact.h"
#include "common/record/framing.h"
#include "common/record/proto_convert.h"
#include "common/target/host.h"
#include "worker/runner/calibrate.h"
#include "worker/runner/conditions.h"
#include "worker/runner/device.h"
#include "worker/runner/gpu_device.h"
#include "worker/runner/limits.h"
#include "worker/runner/machine_monitor.h"
#include "worker/runner/peak.h"
#include "worker/runner/perf_counters.h"
#include "worker/runner/runner.h"
#include "worker/runner/timing_lock.h"
#include "worker/sandbox/sandbox.h"

namespace {

using hone::ExistingFolder;
using hone::ExistingPath;
using hone::HostLock;
using hone::Positive;
using hone::ShowDefault;
using hone::record::MeasureResult;
using hone::record::Outcome;

constexpr char kCpu[] = "cpu";

std::string Encode(const MeasureResult& result) {
  hone::v1::RunResponse response;
  *response.mutable_result() = hone::record::ToProto(result);
  return response.SerializeAsString();
}

// Returns a framed message, which signal handlers can write as it is.
std::string Frame(const std::string& message) {
  std::string frame;
  for (int i = 0; i < 4; ++i) frame.push_back(static_cast<char>(message.size() >> 8 * i));
  return frame + message;
}

std::string TimeoutFrame(absl::Duration limit) {
  const std::string message =
      Encode({.outcome = Outcome::kRunTimeout,
              .detail = "the kernel did not end within " + hone::SecondsText(limit)});
  return Frame(message);
}

// The answer when a kernel tries something forbidden. The signal handler writes the system call's
// number over the zeros.
constexpr char kNumberPlace[] = "0000";
constexpr size_t kDigits = 4;
int forbidden_fd = -1;
std::string* forbidden_frame = nullptr;
size_t forbidden_place = 0;

void PrepareForbidden(int fd) {
  forbidden_fd = fd;
  forbidden_frame = new std::string(
      Frame(Encode({.outcome = Outcome::kCrash,
                    .detail = absl::StrCat("the kernel tried system call ", kNumberPlace,
                                           ", which its sandbox forbids")})));
  forbidden_place = forbidden_frame->find(kNumberPlace);
}

void OnForbidden(int system_call) {
  for (size_t i = kDigits; i-- > 0; system_call /= 10) {
    (*forbidden_frame)[forbidden_place + i] = static_cast<char>('0' + system_call % 10);
  }
  hone::runner::WriteLastWords(forbidden_fd, *forbidden_frame);
}

// Limits of a process that measures on a device. References are the only files that a runner
// writes, and candidates are loaded through files in memory; drivers have theirs, too.
hone::sandbox::ProcessLimits LimitsOf(bool driver, bool writes_references, int64_t memory_bytes,
                                      int64_t whole_reference_bytes) {
  // If an output exceeds the range of f32, its reference is twice as large as expected.
  const int64_t reference_bytes = 2 * whole_reference_bytes + hone::record::kMaxArtifactBytes;
  return {.memory_bytes = memory_bytes,
          .private_memory = driver,
          .file_bytes = driver              ? memory_bytes
                        : writes_references ? reference_bytes
                                            : int64_t{hone::record::kMaxArtifactBytes},
          .open_files = driver ? 1024 : 256,
          .more_tasks = driver ? 4096 : 0};
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "hone-runner: %s\n", std::string(status.message()).c_str());
  return 1;
}

// Returns the exit code: EX_TEMPFAIL if other processes of Hone hold the timing lock.
int MeasurePeak(const std::string& device, const std::string& lock_path) {
  const absl::StatusOr<HostLock> lock = HostLock::Acquire(
      HostLock::Mode::kExclusive, hone::SteadyNow() + absl::Seconds(30), lock_path);
  if (absl::IsDeadlineExceeded(lock.status())) {
    Fail(lock.status());
    return EX_TEMPFAIL;
  }
  if (!lock.ok()) return Fail(lock.status());
  absl::StatusOr<hone::runner::Peak> peak =
      device == kCpu ? hone::runner::MeasurePeak(hone::target::UsableCores())
                     : hone::runner::MeasureGpuPeak(device);
  if (!peak.ok()) return Fail(peak.status());
  if (device == kCpu) {
    peak->calibration = hone::runner::MeasureCalibration(hone::target::DetectHost()).ToText();
  }
  std::puts(peak->ToJson().c_str());
  return 0;
}

int PrintDevices() {
  // Keeps output of drivers on standard output from mixing with the list.
  const int out = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  const std::string list = hone::runner::ListDevices().ToJson() + "\n";
  return write(out, list.data(), list.size()) == static_cast<ssize_t>(list.size()) ? 0 : 1;
}

// `sandbox` has the paths; those of the timing lock and of the device's driver are added here.
int Serve(const std::string& device, const std::string& lock_path, int64_t memory_bytes,
          int64_t whole_reference_bytes, hone::sandbox::SandboxOptions sandbox) {
  // Keeps output of kernels and libraries on standard output from mixing with the messages.
  const int out = dup(STDOUT_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  PrepareForbidden(out);
  sandbox.forbidden = OnForbidden;
  // Creates the lock's files and detects the target while /proc and /sys are readable.
  const auto lock_files = hone::runner::TimingLock::MakeFiles(lock_path);
  if (!lock_files.ok()) return Fail(lock_files.status());
  sandbox.readable.insert(sandbox.readable.end(), lock_files->begin(), lock_files->end());
  hone::runner::MachineMonitor monitor;
  monitor.Look();
  hone::runner::ThrottleWatch throttle;
  hone::target::DetectHost();
  hone::target::DescribeHost();
  // Opens the counters while that is allowed. They do not see what a GPU does.
  std::optional<hone::runner::PerfCounters> counters;
  if (device == kCpu) {
    counters.emplace(hone::runner::HardwareEvents(hone::runner::Processor::Detect()));
  }
  if (device != kCpu) {
    if (absl::Status ready = hone::sandbox::PrepareForDriver(sandbox); !ready.ok()) {
      return Fail(ready);
    }
  } else {
    // Not for a GPU: threads of its driver would inherit the affinity of this one.
    sandbox.start_threads = hone::runner::SetUpThreads;
  }
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  if (absl::Status confined = hone::sandbox::EnterSandbox(sandbox); !confined.ok()) {
    return Fail(confined);
  }
#else
  if (sandbox.start_threads != nullptr) sandbox.start_threads();
#endif
  hone::runner::RunnerOptions options;
  if (device != kCpu) {
    auto made = hone::runner::MakeGpuDevice(device);
    if (!made.ok()) return Fail(made.status());
    options.device = *std::move(made);
  }
  options.lock_path = lock_path;
  options.monitor = &monitor;
  options.memory_bytes = memory_bytes;
  options.whole_reference_bytes = whole_reference_bytes;
  options.throttle = &throttle;
  if (counters.has_value()) options.counters = &*counters;
  options.deadline = [out](absl::Duration limit) -> std::shared_ptr<void> {
    return std::make_shared<hone::runner::Deadline>(limit, out, TimeoutFrame(limit));
  };
  hone::runner::Runner runner(std::move(options));
  for (;;) {
    const absl::StatusOr<std::string> message = hone::record::ReadFrame(STDIN_FILENO);
    if (absl::IsOutOfRange(message.status())) return 0;
    if (!message.ok()) return Fail(message.status());
    hone::v1::RunRequest proto;
    MeasureResult result;
    if (!proto.ParseFromString(*message)) return Fail(absl::DataLossError("a garbled request"));
    const auto request = hone::record::FromProto(proto);
    if (request.ok()) {
      result = runner.Run(*request);
    } else {
      result = {.outcome = Outcome::kInvalid, .detail = std::string(request.status().message())};
    }
    // The lock is kept between the candidates of a batch.
    if (!hone::record::HasInput(STDIN_FILENO)) runner.ReleaseLock();
    if (absl::Status sent = hone::record::WriteFrame(out, Encode(result)); !sent.ok()) {
      return Fail(sent);
    }
    // A new process can use the device again.
    if (runner.device_lost()) return 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  hone::Command app(
      "Loads, checks and times kernels. Started by hone-worker, which sends requests on standard "
      "input.\nExample: hone-runner --measure-peak");
  app.AddVersion("hone-runner " HONE_VERSION);
  bool measure_peak = false;
  bool list_devices = false;
  bool describe = false;
  std::string lock_path = HostLock::DefaultPath();
  std::string device = kCpu;
  app.AddFlag("--measure-peak", measure_peak,
              "Measure the peaks of this machine, print them as JSON, and exit");
  app.AddFlag("--list-devices", list_devices,
              "Print the devices of this machine with their targets as JSON, and exit");
  app.Add("--device", device, "Device that runs the kernels: cpu, cuda, cuda:N, opencl or opencl:N",
          {ShowDefault()});
  hone::sandbox::SandboxOptions sandbox;
  int64_t memory_limit = 0;
  app.Add("--read", sandbox.readable, "File or folder that kernels are loaded from",
          {ExistingPath()});
  app.Add("--write", sandbox.writable, "Folder that references are written to", {ExistingFolder()});
  app.Add("--memory", memory_limit,
          "Address space in bytes; default: nine tenths of this machine's memory", {Positive()});
  int64_t whole_reference = hone::runner::kWholeReferenceBytes;
  app.Add("--whole-reference", whole_reference,
          "Size in bytes of a reference; of a larger one, only some thousand elements are computed "
          "and compared",
          {ShowDefault(), Positive()});
  app.Add("--lock", lock_path, "The host's timing lock", {ShowDefault()});
  app.AddFlag("--unconfined", sandbox.may_be_unconfined,
              "Run kernels even if this system cannot filter their system calls");
  app.AddFlag("--allow-unguarded-files", sandbox.may_leave_files_unguarded,
              "Run kernels even if this system cannot guard files from them (no Landlock)");
  app.AddFlag("--describe", describe,
              "Print the measuring conditions on this machine as JSON, and exit");
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;

  if (describe) {
    std::puts(hone::runner::ToJson(hone::runner::DescribeConditions()).c_str());
    return 0;
  }
  if (list_devices) return PrintDevices();
  if (measure_peak) return MeasurePeak(device, lock_path);
  signal(SIGPIPE, SIG_IGN);
  const bool driver = device != kCpu;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (memory_limit == 0) memory_limit = hone::runner::DefaultMemoryBytes();
  hone::sandbox::LimitProcess(
      LimitsOf(driver, !sandbox.writable.empty(), memory_limit, whole_reference));
  return Serve(device, lock_path, memory_limit, whole_reference, std::move(sandbox));
}
