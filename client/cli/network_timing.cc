#include "client/cli/network_timing.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "client/cli/format.h"
#include "client/network/runner.h"
#include "common/base/host_lock.h"
#include "common/base/median.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/ir/element_bytes.h"
#include "common/target/host.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kWindow = 5;  // consecutive runs
// The median of consecutive runs on a quiet machine is within a few percent of the fastest run.
constexpr double kDisturbedRun = 1.25;
// Threads of the operating system interrupt each thread a few times per second. A program that
// competes for a core does so at least a hundred times.
constexpr double kInterruptionsPerNs = 20e-9;
constexpr double kInterruptionsPerThreadNs = 3e-9;
// A network takes about as long as the sum of its kernels. If it takes this many times as long, its
// threads had to wait for other programs.
constexpr double kDisturbed = 3;

// If other programs leave fewer cores than the network's threads need, they slow it down, even if
// they do not interrupt it: they share caches, memory and the execution units of a core.
constexpr double kUsedByOthers = 0.1;  // of all cores

// The processor time of this machine and of this process so far, in seconds.
struct ProcessorTime {
  double all = 0;
  double own = 0;
};

ProcessorTime ReadProcessorTime() {
  ProcessorTime time;
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& value) {
    return static_cast<double>(value.tv_sec) + 1e-6 * static_cast<double>(value.tv_usec);
  };
  time.own = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  // "cpu  user nice system idle iowait irq softirq steal …", in clock ticks.
  const std::string line = target::FirstLine("/proc/stat");
  const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  for (size_t i = 1; i < words.size() && i <= 8; ++i) {
    double ticks = 0;
    const bool idle = i == 4 || i == 5;
    if (!idle && absl::SimpleAtod(words[i], &ticks)) time.all += ticks * tick;
  }
  return time;
}

// How many times a thread of this process has lost its core to another thread.
int64_t Interruptions() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
}

// Makes elements for the inputs of a network, the same in every call: uniform in [-1, 1), and zeros
// for integers.
std::vector<std::string> SomeInputs(const network::Runner& runner) {
  std::vector<std::string> inputs;
  Rng rng(1, 0);
  for (const graph::TensorType& type : runner.input_types()) {
    std::string& bytes = inputs.emplace_back(type.bytes(), '\0');
    if (!ir::IsFloat(type.dtype)) continue;
    for (int64_t i = 0; i < type.elements(); ++i) {
      const double value = static_cast<double>(rng() >> 40) * 0x1p-23 - 1;
      ir::WriteElement(type.dtype, bytes.data(), i, value);
    }
  }
  return inputs;
}

// Runs the network kWindow times.
absl::StatusOr<RunWindow> MeasureWindow(network::Runner& runner,
                                        absl::Span<const absl::string_view> inputs) {
  RunWindow window;
  std::vector<std::vector<double>> parts;
  std::vector<network::StepTime> times;
  double all_ns = 0;
  const int64_t interruptions = Interruptions();
  for (int run = 0; run < kWindow; ++run) {
    const auto begin = Clock::now();
    HONE_RETURN_IF_ERROR(runner.Run(inputs, &times).status());
    const double ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    window.runs_ns.push_back(ns);
    all_ns += ns;
    parts.resize(times.size());
    for (size_t s = 0; s < times.size(); ++s) parts[s].push_back(static_cast<double>(times[s].ns));
  }
  window.interrupted = WasInterrupted(Interruptions() - interruptions, runner.threads(), all_ns);
  for (size_t s = 0; s < times.size(); ++s) {
    window.steps.push_back({times[s].name, times[s].kernel, Median(std::move(parts[s]))});
  }
  return window;
}

// Describes how much longer a network took than its kernels; "" if not much.
std::string SlowerThanKernels(double latency_ns, double kernels_ns) {
  if (kernels_ns <= 0 || latency_ns <= kDisturbed * kernels_ns) return "";
  return absl::StrFormat("took %.0f times as long as its kernels", latency_ns / kernels_ns);
}

}  // namespace

bool WasInterrupted(int64_t interruptions, int threads, double run_ns) {
  const double usual = run_ns * (kInterruptionsPerNs + threads * kInterruptionsPerThreadNs);
  return static_cast<double>(interruptions) > usual;
}

void AddWindow(RunWindow window, NetworkTiming& timing) {
  timing.fastest_ns =
      std::min(timing.fastest_ns, *std::min_element(window.runs_ns.begin(), window.runs_ns.end()));
  const bool all_interrupted = timing.interrupted == timing.windows;
  ++timing.windows;
  timing.interrupted += window.interrupted ? 1 : 0;
  if (window.interrupted && !all_interrupted) return;
  const double median = Median(std::move(window.runs_ns));
  const bool is_first = timing.speed.latency_ns <= 0 || window.interrupted != all_interrupted;
  if (!is_first && median >= timing.speed.latency_ns) return;
  timing.speed.latency_ns = median;
  timing.speed.steps = std::move(window.steps);
}

std::string WhyDisturbed(const NetworkTiming& timing, double kernels_ns) {
  const double latency_ns = timing.speed.latency_ns;
  if (timing.windows > 0 && timing.interrupted == timing.windows) {
    return absl::StrCat("other programs took cores from the network in ",
                        timing.windows == 1 ? "all of its runs"
                                            : absl::StrCat("all ", timing.windows, " series of ",
                                                           kWindow, " runs"));
  }
  if (latency_ns > kDisturbedRun * timing.fastest_ns) {
    return absl::StrCat("the smallest median of ", kWindow, " runs is ", FormatLatency(latency_ns),
                        ", and the fastest run took ", FormatLatency(timing.fastest_ns));
  }
  const double cores = timing.machine_cores;
  if (timing.windows > 0 && timing.others_cores > kUsedByOthers * cores &&
      timing.others_cores + timing.speed.threads > cores * (1 - kUsedByOthers)) {
    return absl::StrFormat("other programs used %.1f of the %d cores of this machine",
                           timing.others_cores, timing.machine_cores);
  }
  const std::string disturbance = SlowerThanKernels(latency_ns, kernels_ns);
  if (disturbance.empty()) return "";
  return absl::StrCat("the network ", disturbance, " (", FormatLatency(latency_ns), " instead of ",
                      FormatLatency(kernels_ns), ")");
}

NetworkTiming TimingOf(const NetworkArgument& network) {
  NetworkTiming timing;
  timing.speed = {.network = std::filesystem::path(network.path).filename().string(),
                  .inputs = DescribeValues(network.graph, network.graph.inputs),
                  .target = target::DetectHost().Key()};
  return timing;
}

absl::Status MeasureNetwork(const NetworkArgument& network,
                            absl::Span<const network::NetworkKernel> kernels, absl::Duration time,
                            NetworkTiming& timing) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<network::Runner> runner,
                        network::Runner::Create(network.graph, network.partition, kernels));
  const std::vector<std::string> inputs = SomeInputs(*runner);
  const std::vector<absl::string_view> views(inputs.begin(), inputs.end());
  HONE_RETURN_IF_ERROR(runner->Run(views).status());
  HONE_ASSIGN_OR_RETURN(const HostLock lock, HostLock::Acquire(HostLock::Mode::kExclusive));
  timing.speed.threads = runner->threads();
  timing.speed.measured_unix_ms = absl::ToUnixMillis(absl::Now());
  const ProcessorTime before = ReadProcessorTime();
  const absl::Time begin = absl::Now();
  do {
    HONE_ASSIGN_OR_RETURN(RunWindow window, MeasureWindow(*runner, views));
    AddWindow(std::move(window), timing);
  } while (absl::Now() < begin + time);
  const ProcessorTime after = ReadProcessorTime();
  const double others = (after.all - before.all) - (after.own - before.own);
  timing.others_cores =
      std::min(timing.others_cores, others / absl::ToDoubleSeconds(absl::Now() - begin));
  timing.machine_cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return absl::OkStatus();
}

Json TimingJson(const NetworkTiming& timing, const std::string& why) {
  const NetworkSpeed& speed = timing.speed;
  return {{"network", speed.network},
          {"inputs", speed.inputs},
          {"target", speed.target},
          {"threads", speed.threads},
          {"latency_ns", speed.latency_ns},
          {"fastest_run_ns", timing.fastest_ns},
          {"is_disturbed", !why.empty()},
          {"disturbance", why},
          {"others_cores", timing.windows == 0 ? 0.0 : timing.others_cores},
          {"interrupted_share",
           timing.windows == 0 ? 0.0 : static_cast<double>(timing.interrupted) / timing.windows}};
}

}  // namespace hone::cli
