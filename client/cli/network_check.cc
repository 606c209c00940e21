#include "client/cli/network_check.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
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
#include "common/base/status_macros.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kAttempts = 3;
constexpr int kWindow = 5;  // consecutive runs
constexpr size_t kPrintedSteps = 10;
// If the median is this many times the fastest run, other programs disturbed the measurement.
constexpr double kDisturbedRun = 2;

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Runs the network kWindow times. If the median of the network is lower than before, sets it and
// the medians of the steps. Lowers `fastest_ns` to the time of the fastest run.
absl::Status RunWindow(network::Runner& runner, absl::Span<const absl::string_view> inputs,
                       NetworkSpeed& speed, double& fastest_ns) {
  std::vector<double> whole;
  std::vector<std::vector<double>> parts;
  std::vector<network::StepTime> times;
  for (int run = 0; run < kWindow; ++run) {
    const auto begin = Clock::now();
    HONE_RETURN_IF_ERROR(runner.Run(inputs, &times).status());
    whole.push_back(std::chrono::duration<double, std::nano>(Clock::now() - begin).count());
    parts.resize(times.size());
    for (size_t s = 0; s < times.size(); ++s) parts[s].push_back(static_cast<double>(times[s].ns));
  }
  fastest_ns = std::min(fastest_ns, *std::min_element(whole.begin(), whole.end()));
  const double median = Median(std::move(whole));
  if (speed.latency_ns > 0 && speed.latency_ns <= median) return absl::OkStatus();
  speed.latency_ns = median;
  speed.steps.clear();
  for (size_t s = 0; s < times.size(); ++s) {
    speed.steps.push_back({times[s].name, times[s].kernel, Median(std::move(parts[s]))});
  }
  return absl::OkStatus();
}

// Measures with newly allocated memory, and while no other Hone process on this machine measures.
absl::Status Measure(const NetworkArgument& network,
                     absl::Span<const network::NetworkKernel> kernels, absl::Duration time,
                     NetworkSpeed& speed, double& fastest_ns) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<network::Runner> runner,
                        network::Runner::Create(network.graph, network.partition, kernels));
  const std::vector<std::string> inputs = SomeInputs(*runner);
  const std::vector<absl::string_view> views(inputs.begin(), inputs.end());
  HONE_RETURN_IF_ERROR(runner->Run(views).status());
  HONE_ASSIGN_OR_RETURN(const HostLock lock, HostLock::Acquire(HostLock::Mode::kExclusive));
  speed.threads = runner->threads();
  speed.measured_unix_ms = absl::ToUnixMillis(absl::Now());
  const absl::Time end = absl::Now() + time;
  do {
    HONE_RETURN_IF_ERROR(RunWindow(*runner, views, speed, fastest_ns));
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

Json CheckJson(const NetworkSpeed& speed, const std::optional<NetworkSpeed>& baseline,
               const NetworkCheckOptions& options) {
  Json json = {{"network", speed.network},       {"inputs", speed.inputs},
               {"target", speed.target},         {"threads", speed.threads},
               {"latency_ns", speed.latency_ns}, {"baseline", options.baseline}};
  if (!baseline) {
    json["saved"] = true;
    return json;
  }
  const double regression = RegressionOf(speed.latency_ns, baseline->latency_ns);
  json["baseline_latency_ns"] = baseline->latency_ns;
  json["baseline_unix_ms"] = baseline->measured_unix_ms;
  json["regression"] = regression;
  json["max_regression"] = options.max_regression;
  json["passed"] = regression <= options.max_regression;
  Json steps = Json::array();
  for (const ComparedStep& each : CompareSteps(speed, *baseline)) {
    steps.push_back(
        {{"step", each.step.name},
         {"kernel", each.step.kernel},
         {"latency_ns", each.step.latency_ns},
         {"baseline_latency_ns", each.baseline_ns > 0 ? Json(each.baseline_ns) : Json(nullptr)}});
  }
  json["steps"] = std::move(steps);
  return json;
}

void PrintComparison(const NetworkSpeed& speed, const NetworkSpeed& baseline) {
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
}

absl::Status Save(const Globals& globals, const NetworkCheckOptions& options,
                  std::vector<NetworkSpeed> baselines, const NetworkSpeed& speed) {
  std::erase_if(baselines, [&](const NetworkSpeed& each) { return MeasureTheSame(each, speed); });
  baselines.push_back(speed);
  HONE_RETURN_IF_ERROR(WriteBaselines(options.baseline, baselines));
  if (globals.json) return PrintJson(CheckJson(speed, std::nullopt, options));
  PrintWrapped(absl::StrCat(DescribeMeasured(speed), ": ", FormatLatency(speed.latency_ns),
                            ", saved in ", options.baseline));
  return absl::OkStatus();
}

}  // namespace

std::string WhyNoBaseline(const NetworkSpeed& speed, double fastest_ns, double kernels_ns) {
  if (speed.latency_ns > kDisturbedRun * fastest_ns) {
    return absl::StrCat("the smallest median of ", kWindow, " runs is ",
                        FormatLatency(speed.latency_ns), ", and the fastest run took ",
                        FormatLatency(fastest_ns));
  }
  const std::string disturbance = DisturbanceOfRuns(speed.latency_ns, kernels_ns);
  if (disturbance.empty()) return "";
  return absl::StrCat("the network ", disturbance, " (", FormatLatency(speed.latency_ns),
                      " instead of ", FormatLatency(kernels_ns), ")");
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
  NetworkSpeed speed = SpeedOf(network);
  double fastest_ns = std::numeric_limits<double>::infinity();
  const auto measure = [&] { return Measure(network, kernels, options.time, speed, fastest_ns); };
  HONE_RETURN_IF_ERROR(measure());
  if (options.save) {
    const double kernels_ns = SumOfKernels(network, kernels);
    std::string why = WhyNoBaseline(speed, fastest_ns, kernels_ns);
    for (int a = 1; a < kAttempts && !why.empty(); ++a) {
      HONE_RETURN_IF_ERROR(measure());
      why = WhyNoBaseline(speed, fastest_ns, kernels_ns);
    }
    if (why.empty()) return Save(globals, options, *std::move(baselines), speed);
    return absl::FailedPreconditionError(absl::StrCat(
        "other work disturbs this machine: ", why,
        ". No baseline was saved, because every later check would pass; measure when the machine "
        "is idle, or for longer (--time)"));
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
  absl::Status result;
  if (regression() > options.max_regression) {
    result = absl::FailedPreconditionError(
        absl::StrFormat("%s is %.1f %% slower than its baseline, and at most %g %% is allowed",
                        options.words.path, 100 * regression(), 100 * options.max_regression));
  }
  if (globals.json) return PrintJson(CheckJson(speed, *baseline, options), result);
  PrintComparison(speed, *baseline);
  return result;
}

}  // namespace hone::cli
