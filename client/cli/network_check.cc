#include "client/cli/network_check.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/exit_code.h"
#include "client/cli/format.h"
#include "client/cli/json_output.h"
#include "client/cli/network_kernels.h"
#include "client/cli/network_run.h"
#include "client/cli/quiet_check.h"
#include "client/cli/session.h"
#include "client/cli/table.h"
#include "client/cli/terminal.h"
#include "client/network/runner.h"
#include "common/base/host_lock.h"
#include "common/base/median.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAttempts = 3;
constexpr int kWindow = 5;  // consecutive runs
constexpr size_t kPrintedSteps = 10;
// The median of consecutive runs on a quiet machine is within a few percent of the fastest run.
constexpr double kDisturbedRun = 1.25;
// Threads of the operating system interrupt each thread a few times per second. A program that
// competes for a core does so at least a hundred times.
constexpr double kInterruptionsPerNs = 20e-9;
constexpr double kInterruptionsPerThreadNs = 3e-9;

// How many times a thread of this process has lost its core to another thread.
int64_t Interruptions() {
  struct rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_nivcsw;
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

// Measures with newly allocated memory, and while no other Hone process on this machine measures.
absl::Status Measure(const NetworkArgument& network,
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
  const absl::Time end = absl::Now() + time;
  do {
    HONE_ASSIGN_OR_RETURN(RunWindow window, MeasureWindow(*runner, views));
    AddWindow(std::move(window), timing);
  } while (absl::Now() < end);
  return absl::OkStatus();
}

NetworkSpeed SpeedOf(const NetworkArgument& network) {
  return {.network = std::filesystem::path(network.path).filename().string(),
          .inputs = DescribeValues(network.graph, network.graph.inputs),
          .target = target::DetectHost().Key()};
}

// A step with its time in the baseline, or 0 if the baseline does not have the step.
struct ComparedStep {
  StepSpeed step;
  double baseline_ns = 0;

  double difference_ns() const { return baseline_ns > 0 ? step.latency_ns - baseline_ns : 0; }
};

std::vector<ComparedStep> CompareSteps(const NetworkSpeed& speed, const NetworkSpeed& baseline) {
  std::map<std::string, double> known;
  for (const StepSpeed& step : baseline.steps) known[step.name] = step.latency_ns;
  std::vector<ComparedStep> compared;
  for (const StepSpeed& step : speed.steps) compared.push_back({step, known[step.name]});
  return compared;
}

double RegressionOf(double now, double before) { return before > 0 ? now / before - 1 : 0; }

std::string PercentText(double fraction) { return absl::StrFormat("%+.1f %%", 100 * fraction); }

Json ComparisonJson(const NetworkTiming& timing, const std::string& disturbance,
                    const NetworkSpeed& baseline, const NetworkCheckOptions& options) {
  const NetworkSpeed& speed = timing.speed;
  const double regression = RegressionOf(speed.latency_ns, baseline.latency_ns);
  Json json = TimingJson(timing, disturbance);
  json["baseline"] = options.baseline;
  json["baseline_latency_ns"] = baseline.latency_ns;
  json["baseline_unix_ms"] = baseline.measured_unix_ms;
  json["regression"] = regression;
  json["max_regression"] = options.max_regression;
  json["passed"] = regression <= options.max_regression;
  Json steps = Json::array();
  for (const ComparedStep& each : CompareSteps(speed, baseline)) {
    steps.push_back(
        {{"step", each.step.name},
         {"kernel", each.step.kernel},
         {"latency_ns", each.step.latency_ns},
         {"baseline_latency_ns", each.baseline_ns > 0 ? Json(each.baseline_ns) : Json(nullptr)}});
  }
  json["steps"] = std::move(steps);
  return json;
}

void PrintComparison(const NetworkSpeed& speed, const std::string& disturbance,
                     const NetworkSpeed& baseline) {
  PrintWrapped(DescribeMeasured(speed));
  std::vector<ComparedStep> steps = CompareSteps(speed, baseline);
  std::stable_sort(steps.begin(), steps.end(), [](const ComparedStep& a, const ComparedStep& b) {
    return std::abs(a.difference_ns()) > std::abs(b.difference_ns());
  });
  const size_t others = steps.size() - std::min(steps.size(), kPrintedSteps);
  steps.resize(steps.size() - others);
  Table table({Left("step"), Right("baseline"), Right("now"), Right("change"), Left("kernel")});
  for (const ComparedStep& each : steps) {
    table.AddRow({each.step.name, each.baseline_ns > 0 ? FormatLatency(each.baseline_ns) : "-",
                  FormatLatency(each.step.latency_ns),
                  each.baseline_ns > 0
                      ? PercentText(RegressionOf(each.step.latency_ns, each.baseline_ns))
                      : "new",
                  each.step.kernel});
  }
  absl::PrintF("\n");
  table.Print();
  if (others > 0) absl::PrintF("%d other steps changed less\n", others);
  PrintWrapped(absl::StrFormat(
      "\nwhole network  %s, the baseline of %s is %s: %s", FormatLatency(speed.latency_ns),
      FormatTime(baseline.measured_unix_ms), FormatLatency(baseline.latency_ns),
      PercentText(RegressionOf(speed.latency_ns, baseline.latency_ns))));
  if (!disturbance.empty()) {
    PrintWrapped(absl::StrCat(
        "other work disturbed this measurement, so the network may be faster: ", disturbance));
  }
}

// Saves the baseline unless `disturbance` says that other work disturbed its measurement.
absl::Status Save(const Globals& globals, const NetworkCheckOptions& options,
                  std::vector<NetworkSpeed> baselines, const NetworkTiming& timing,
                  const std::string& disturbance) {
  const NetworkSpeed& speed = timing.speed;
  absl::Status result;
  if (disturbance.empty()) {
    std::erase_if(baselines, [&](const NetworkSpeed& each) { return MeasureTheSame(each, speed); });
    baselines.push_back(speed);
    HONE_RETURN_IF_ERROR(WriteBaselines(options.baseline, baselines));
  } else {
    result = absl::FailedPreconditionError(absl::StrCat(
        "other work disturbs this machine: ", disturbance,
        ". No baseline was saved, because every later check would pass; measure when the machine "
        "is idle, or for longer (--time)"));
  }
  if (globals.json) {
    Json json = TimingJson(timing, disturbance);
    json["baseline"] = options.baseline;
    json["saved"] = result.ok();
    return PrintJson(std::move(json), result);
  }
  if (!result.ok()) return result;
  PrintWrapped(absl::StrCat(DescribeMeasured(speed), ": ", FormatLatency(speed.latency_ns),
                            ", saved in ", options.baseline));
  return absl::OkStatus();
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
  const std::string disturbance = DisturbanceOfRuns(latency_ns, kernels_ns);
  if (disturbance.empty()) return "";
  return absl::StrCat("the network ", disturbance, " (", FormatLatency(latency_ns), " instead of ",
                      FormatLatency(kernels_ns), ")");
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
          {"interrupted_share",
           timing.windows == 0 ? 0.0 : static_cast<double>(timing.interrupted) / timing.windows}};
}

absl::Status CheckNetwork(const Globals& globals, const NetworkCheckOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNetworkTarget(globals));
  HONE_ASSIGN_OR_RETURN(const NetworkArgument network, ReadNetwork(options.words));
  absl::StatusOr<std::vector<NetworkSpeed>> baselines = ReadBaselines(options.baseline);
  if (absl::IsNotFound(baselines.status())) {
    if (!options.save) {
      return absl::NotFoundError(
          absl::StrCat(baselines.status().message(), "; --save makes the file"));
    }
    baselines = std::vector<NetworkSpeed>();
  }
  HONE_RETURN_IF_ERROR(baselines.status());
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  HONE_ASSIGN_OR_RETURN(const std::vector<network::NetworkKernel> kernels,
                        LoadNetworkKernels(*session, network, {.tolerance = options.tolerance}));
  if (const std::string noise = NoiseNow(); !noise.empty()) {
    absl::FPrintF(stderr, "warning: %s\n", noise);
  }
  NetworkTiming timing{.speed = SpeedOf(network)};
  const NetworkSpeed& speed = timing.speed;
  const double kernels_ns = SumOfKernels(network, kernels);
  const auto measure = [&] { return Measure(network, kernels, options.time, timing); };
  HONE_RETURN_IF_ERROR(measure());
  if (options.save) {
    std::string disturbance = WhyDisturbed(timing, kernels_ns);
    for (int a = 1; a < kAttempts && !disturbance.empty(); ++a) {
      HONE_RETURN_IF_ERROR(measure());
      disturbance = WhyDisturbed(timing, kernels_ns);
    }
    return Save(globals, options, *std::move(baselines), timing, disturbance);
  }

  const auto baseline =
      std::find_if(baselines->begin(), baselines->end(),
                   [&](const NetworkSpeed& each) { return MeasureTheSame(each, speed); });
  if (baseline == baselines->end()) {
    return NothingKnownError(absl::StrCat(options.baseline, " has no baseline for ",
                                          DescribeMeasured(speed), "; --save adds it"));
  }
  const auto regression = [&] { return RegressionOf(speed.latency_ns, baseline->latency_ns); };
  for (int a = 1; a < kAttempts && regression() > options.max_regression; ++a) {
    HONE_RETURN_IF_ERROR(measure());
  }
  const std::string disturbance = WhyDisturbed(timing, kernels_ns);
  absl::Status result;
  if (regression() > options.max_regression) {
    result = absl::FailedPreconditionError(absl::StrFormat(
        "%s is %.1f %% slower than its baseline, and at most %g %% is allowed%s",
        options.words.path, 100 * regression(), 100 * options.max_regression,
        disturbance.empty() ? "" : "; other work disturbed the measurement, so check again"));
  }
  if (globals.json) {
    return PrintJson(ComparisonJson(timing, disturbance, *baseline, options), result);
  }
  PrintComparison(speed, disturbance, *baseline);
  return result;
}

}  // namespace hone::cli
