#include "client/cli/network/network_timing.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/other_work.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "common/base/clock.h"
#include "common/base/counted.h"
#include "common/base/file.h"
#include "common/base/host_lock.h"
#include "common/base/median.h"
#include "common/base/rng.h"
#include "common/base/status_macros.h"
#include "common/target/host.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

constexpr char kVersionKey[] = "hone_baselines";
constexpr int kVersion = 1;

Json SpeedJson(const NetworkSpeed& speed) {
  Json steps = Json::array();
  for (const StepSpeed& step : speed.steps) {
    steps.push_back(
        {{"step", step.name}, {"kernel", step.kernel}, {"latency_ns", step.latency_ns}});
  }
  Json json = {{"network", speed.network},
               {"inputs", speed.inputs},
               {"target", speed.target},
               {"threads", speed.threads},
               {"measured_unix_ms", speed.measured_unix_ms},
               {"latency_ns", speed.latency_ns}};
  if (!speed.disturbance.empty()) json["disturbance"] = speed.disturbance;
  json["steps"] = std::move(steps);
  return json;
}

constexpr int kWindow = 5;  // consecutive runs
// Other processes that measure are awaited for at least this long.
constexpr absl::Duration kLeastWait = absl::Seconds(1);
// The last run may end this much after the deadline.
constexpr absl::Duration kMostOverrun = absl::Seconds(2);
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

// The time of a run. For an operator this is the time of its kernel, if the runner tells it: the
// memory for the outputs may take longer.
double TimeOf(const TimedRun& run, bool is_operator) {
  if (!is_operator || run.steps.empty()) return run.ns;
  double ns = 0;
  for (const network::StepTime& step : run.steps) ns += static_cast<double>(step.ns);
  return ns;
}

// Runs the network kWindow times, or less often if the deadline comes. `work` observes other
// programs.
absl::StatusOr<RunWindow> MeasureWindow(network::Runner& runner, bool is_operator,
                                        absl::Span<const absl::string_view> inputs,
                                        const OtherWork& work, const Clock& clock,
                                        absl::Time deadline) {
  RunWindow window;
  std::vector<std::vector<double>> parts;
  TimedRun run;
  double all_ns = 0;
  const int64_t interruptions = work.Interruptions();
  const auto add_steps = [&] {
    parts.resize(run.steps.size());
    for (size_t s = 0; s < parts.size(); ++s) {
      parts[s].push_back(static_cast<double>(run.steps[s].ns));
    }
  };
  const auto continues = [&](int runs) {
    return runs == 0 || (runs < kWindow && clock.Now() < deadline);
  };
  for (int i = 0; continues(i); ++i) {
    HONE_ASSIGN_OR_RETURN(run, RunTimed(runner, inputs, runner.times_steps_freely()));
    window.runs_ns.push_back(TimeOf(run, is_operator));
    all_ns += run.ns;
    if (runner.times_steps_freely()) add_steps();
  }
  window.interrupted =
      WasInterrupted(work.Interruptions() - interruptions, runner.threads(), all_ns);
  for (int i = 0; continues(i) && !runner.times_steps_freely(); ++i) {
    HONE_ASSIGN_OR_RETURN(run, RunTimed(runner, inputs, /*steps=*/true));
    add_steps();
  }
  for (size_t s = 0; s < parts.size(); ++s) {
    window.steps.push_back({run.steps[s].name, run.steps[s].kernel, Median(std::move(parts[s]))});
  }
  return window;
}

// Describes how much longer a network took than its kernels; "" if not much.
std::string SlowerThanKernels(double latency_ns, double kernels_ns) {
  if (kernels_ns <= 0 || latency_ns <= kDisturbed * kernels_ns) return "";
  return absl::StrFormat("took %.0f times as long as its kernels", latency_ns / kernels_ns);
}

}  // namespace

void RepeatedRuns::Add(double run_ns, std::vector<network::StepTime> steps) {
  if (steps_.size() < kMostSteps) steps_.push_back(std::move(steps));
  runs_ns_.push_back(run_ns);
}

double RepeatedRuns::At(double share) const {
  std::vector<double> sorted = runs_ns_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

double RepeatedRuns::SumNs() const {
  return std::accumulate(runs_ns_.begin(), runs_ns_.end(), 0.0);
}

const std::vector<network::StepTime>& RepeatedRuns::MedianSteps() const {
  const double median = At(0.5);
  size_t nearest = 0;
  for (size_t i = 1; i < steps_.size(); ++i) {
    if (std::abs(runs_ns_[i] - median) < std::abs(runs_ns_[nearest] - median)) nearest = i;
  }
  return steps_[nearest];
}

// Json::get_to calls these functions. They throw Json::exception if a member is missing or has
// another type.
static void from_json(const Json& json, StepSpeed& step) {
  json.at("step").get_to(step.name);
  json.at("kernel").get_to(step.kernel);
  json.at("latency_ns").get_to(step.latency_ns);
}

static void from_json(const Json& json, NetworkSpeed& speed) {
  json.at("network").get_to(speed.network);
  json.at("inputs").get_to(speed.inputs);
  json.at("target").get_to(speed.target);
  json.at("threads").get_to(speed.threads);
  json.at("measured_unix_ms").get_to(speed.measured_unix_ms);
  json.at("latency_ns").get_to(speed.latency_ns);
  speed.disturbance = json.value("disturbance", "");
  json.at("steps").get_to(speed.steps);
}

bool MeasureTheSame(const NetworkSpeed& a, const NetworkSpeed& b) {
  return a.network == b.network && a.inputs == b.inputs && a.target == b.target &&
         a.threads == b.threads;
}

std::string DescribeMeasured(const NetworkSpeed& speed) {
  std::string text = absl::StrCat(speed.network, " (", speed.inputs, ") on ", speed.target);
  if (speed.threads > 0) absl::StrAppend(&text, " with ", Counted(speed.threads, "thread"));
  return text;
}

std::optional<NetworkSpeed> AddBaseline(const NetworkSpeed& speed,
                                        std::vector<NetworkSpeed>& baselines) {
  for (NetworkSpeed& baseline : baselines) {
    if (MeasureTheSame(baseline, speed)) return std::exchange(baseline, speed);
  }
  baselines.push_back(speed);
  return std::nullopt;
}

std::string BaselinesToText(const std::vector<NetworkSpeed>& baselines) {
  Json list = Json::array();
  for (const NetworkSpeed& baseline : baselines) list.push_back(SpeedJson(baseline));
  const Json file = {{kVersionKey, kVersion}, {"baselines", std::move(list)}};
  return absl::StrCat(file.dump(2, ' ', false, Json::error_handler_t::replace), "\n");
}

absl::StatusOr<std::vector<NetworkSpeed>> ParseBaselines(absl::string_view text) {
  int version = 0;
  std::vector<Json> list;
  try {
    const Json file = Json::parse(text.begin(), text.end());
    file.at(kVersionKey).get_to(version);
    file.at("baselines").get_to(list);
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("this is not a file of baselines");
  }
  if (version != kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the baselines have version ", version,
                                                   "; this program reads version ", kVersion));
  }
  std::vector<NetworkSpeed> baselines;
  for (const Json& each : list) {
    bool complete = false;
    try {
      complete = each.get_to(baselines.emplace_back()).latency_ns > 0;
    } catch (const Json::exception&) {
    }
    if (complete) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("baseline ", baselines.size(), ": a member is missing or malformed"));
  }
  return baselines;
}

absl::StatusOr<std::vector<NetworkSpeed>> ReadBaselines(const std::string& path) {
  HONE_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  absl::StatusOr<std::vector<NetworkSpeed>> baselines = ParseBaselines(text);
  if (baselines.ok()) return baselines;
  return absl::Status(baselines.status().code(),
                      absl::StrCat(path, ": ", baselines.status().message()));
}

absl::Status WriteBaselines(const std::string& path, const std::vector<NetworkSpeed>& baselines) {
  return WithExitCode(WriteFileAtomically(path, BaselinesToText(baselines)), kExitFailed);
}

std::vector<std::string> SomeInputs(const network::Runner& runner) {
  std::vector<std::string> inputs;
  Rng rng(1, 0);
  for (const graph::TensorType& type : runner.input_types()) {
    inputs.push_back(SomeElements(type, rng));
  }
  return inputs;
}

absl::StatusOr<std::unique_ptr<network::Runner>> MakeRunner(
    const NetworkArgument& network, absl::Span<const network::NetworkKernel> kernels,
    const network::RunnerOptions& options) {
  auto runner = network::Runner::Create(network.graph, network.partition, kernels, options);
  if (!runner.ok()) return WithExitCode(runner.status(), kExitFailed);
  return runner;
}

absl::StatusOr<TimedRun> RunTimed(network::Runner& runner,
                                  absl::Span<const absl::string_view> inputs, bool steps) {
  using Clock = std::chrono::steady_clock;
  TimedRun run;
  const auto begin = Clock::now();
  auto outputs = runner.Run(inputs, steps ? &run.steps : nullptr);
  run.ns = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
  if (!outputs.ok()) return WithExitCode(outputs.status(), kExitFailed);
  run.outputs = *std::move(outputs);
  return run;
}

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
    return absl::StrCat("other programs took cores from the ", timing.what, " ",
                        timing.windows == 1 ? "while it ran"
                                            : absl::StrCat("in all ", timing.windows, " series of ",
                                                           kWindow, " runs"));
  }
  if (latency_ns > kDisturbedRun * timing.fastest_ns) {
    return absl::StrCat("the smallest median of ", kWindow, " runs is ", FormatLatency(latency_ns),
                        ", and the fastest run took ", FormatLatency(timing.fastest_ns));
  }
  const double cores = timing.machine_cores;
  const double others = timing.others_cores.value_or(0);
  if (others > kUsedByOthers * cores &&
      others + timing.speed.threads > cores * (1 - kUsedByOthers)) {
    return absl::StrFormat("other programs used %.1f of the %d cores of this machine", others,
                           timing.machine_cores);
  }
  // With fewer threads than its kernels, a network takes longer anyway; and so it does on a GPU, to
  // which its inputs are copied.
  if (timing.speed.threads < std::max(1, timing.target_cores)) return "";
  const std::string disturbance = SlowerThanKernels(latency_ns, kernels_ns);
  if (disturbance.empty()) return "";
  return absl::StrCat("the ", timing.what, " ", disturbance, " (", FormatLatency(latency_ns),
                      " instead of ", FormatLatency(kernels_ns), ")");
}

std::string DisturbanceText(absl::string_view why, absl::string_view what) {
  return absl::StrCat("other work disturbed this measurement, so the ", what,
                      " may be faster: ", why);
}

NetworkTiming TimingOf(const NetworkArgument& network,
                       absl::Span<const network::NetworkKernel> kernels) {
  NetworkTiming timing;
  const bool is_gpu = !kernels.empty() && kernels[0].module != nullptr;
  const target::Target target = is_gpu ? kernels[0].target : target::DetectHost();
  timing.speed = {.network = std::filesystem::path(network.path).filename().string(),
                  .inputs = DescribeValues(network.graph, network.graph.inputs),
                  .target = target.Key()};
  if (network.is_operator) {
    // The keys of an operator may be written in any order.
    const ir::Workload& workload = network.tasks[0].workload;
    timing.what = "operator";
    timing.speed.network = workload.name;
    timing.speed.inputs = absl::StrCat(DescribeValues(network.graph, network.graph.nodes[0].inputs),
                                       " -> ", DescribeValues(network.graph, network.graph.outputs),
                                       "; ", workload.StructuralDigest().ToHex().substr(0, 8));
  }
  timing.target_cores = is_gpu ? 0 : target.cores;
  timing.machine_cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return timing;
}

absl::Status MeasureNetwork(const NetworkArgument& network,
                            absl::Span<const network::NetworkKernel> kernels,
                            const network::RunnerOptions& options, absl::Duration time,
                            NetworkTiming& timing, absl::Time deadline) {
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<network::Runner> runner,
                        MakeRunner(network, kernels, options));
  const std::vector<std::string> inputs = SomeInputs(*runner);
  const std::vector<absl::string_view> views(inputs.begin(), inputs.end());
  HONE_ASSIGN_OR_RETURN(const TimedRun first, RunTimed(*runner, views, /*steps=*/false));
  const SystemClock clock;
  if (clock.Now() + absl::Nanoseconds(first.ns) > deadline + kMostOverrun) {
    return absl::DeadlineExceededError(absl::StrCat(
        "there was no time left after a first run, which took ", FormatLatency(first.ns)));
  }
  HONE_ASSIGN_OR_RETURN(
      const HostLock lock,
      HostLock::Acquire(HostLock::Mode::kExclusive, std::max(deadline, clock.Now() + kLeastWait)));
  timing.speed.threads = runner->threads();
  timing.speed.measured_unix_ms = absl::ToUnixMillis(absl::Now());
  const OtherWork work(&clock);
  const absl::Time end = std::min(clock.Now() + time, deadline);
  do {
    HONE_ASSIGN_OR_RETURN(RunWindow window, MeasureWindow(*runner, network.is_operator, views, work,
                                                          clock, deadline));
    AddWindow(std::move(window), timing);
  } while (clock.Now() < end);
  if (const std::optional<double> cores = work.Cores(); cores.has_value()) {
    timing.others_cores = std::min(timing.others_cores.value_or(*cores), *cores);
  }
  return absl::OkStatus();
}

Json TimingJson(const NetworkTiming& timing, const std::string& why) {
  const NetworkSpeed& speed = timing.speed;
  return {{timing.what, speed.network},
          {"inputs", speed.inputs},
          {"target", speed.target},
          {"threads", speed.threads},
          {"latency_ns", speed.latency_ns},
          {"fastest_run_ns", timing.fastest_ns},
          {"is_disturbed", !why.empty()},
          {"disturbance", why},
          {"others_cores", timing.others_cores.value_or(0)},
          {"interrupted_share",
           timing.windows == 0 ? 0.0 : static_cast<double>(timing.interrupted) / timing.windows}};
}

}  // namespace hone::cli
