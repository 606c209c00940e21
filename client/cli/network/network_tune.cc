#include "client/cli/network/network_tune.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/cli/exit_code.h"
#include "client/cli/network/bf16_choice.h"
#include "client/cli/network/network_check.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/network/network_report.h"
#include "client/cli/network/network_sizes.h"
#include "client/cli/network/network_timing.h"
#include "client/cli/network/numeric_error.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/network_output.h"
#include "client/cli/output/progress.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/known_best.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "client/cli/tune/run_job.h"
#include "common/base/counted.h"
#include "common/base/digest.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"

namespace hone::cli {
namespace {

// The default number of trials per task, without --trials and --time.
constexpr int64_t kTrialsPerTask = 32;
// The least number of trials per task that a warning recommends.
constexpr int64_t kFewTrialsPerTask = 8;
// With less time than this for each task, some tasks usually get no trial, because a task begins
// with several trials and the confirmation takes a quarter of the time.
constexpr int64_t kFewSecondsPerTask = 4;
constexpr absl::Duration kMeasuringTime = absl::Seconds(1);
// The part of a time limit that is kept for measuring the whole network, and the most of it.
constexpr double kMeasuringShare = 0.1;
constexpr absl::Duration kMostKept = absl::Seconds(4);
// A confirmed latency of more than this many times what the task takes in the network is wrong. (In
// the network, a task may take much longer, because its tensors are not in the caches.)
constexpr double kContradiction = 2;
// Confirming a task again takes about this long.
constexpr absl::Duration kConfirmingAgain = absl::Seconds(2);

// A network for each size, and the tasks of all of them, each once.
struct TunedNetwork {
  NetworkSizes sizes;
  std::vector<NetworkArgument> parts;  // of the sizes
  // With the words as given and all tasks, weighted by the steps of all sizes. The graph is that of
  // the first size.
  NetworkArgument all;
  std::vector<std::vector<double>> weights;  // of each task in each size

  bool HasSizes() const { return sizes.AreSeveral(); }
};

absl::StatusOr<TunedNetwork> ReadTuned(const Globals& globals, const NetworkWords& words) {
  TunedNetwork network;
  HONE_ASSIGN_OR_RETURN(network.sizes, ExpandSizes(words));
  HONE_ASSIGN_OR_RETURN(network.parts, ReadNetworks(globals, network.sizes));
  return network;
}

// Replaces each size by the network whose tensors between kernels are in bf16.
absl::Status StorePartsInBf16(Session& session, double tolerance, TunedNetwork& network) {
  HONE_ASSIGN_OR_RETURN(const bool can, CanChooseBf16(session, tolerance));
  if (!can) {
    return absl::InvalidArgumentError(
        "--between bf16 needs --tolerance 2e-3 or more and the CPU of this machine as the target, "
        "because the network is run here to find which tensors may be in bf16");
  }
  for (NetworkArgument& part : network.parts) {
    HONE_ASSIGN_OR_RETURN(NetworkKernels kernels,
                          LoadOrDraftKernels(session, part.tasks, tolerance));
    HONE_ASSIGN_OR_RETURN(Bf16Choice choice,
                          ChooseBf16(session, {.tolerance = tolerance, .between = "bf16"},
                                     /*inputs=*/{}, part, kernels));
    choice.untuned = 0;  // they are tuned now
    PrintBf16(choice, tolerance, /*given_inputs=*/false);
  }
  return absl::OkStatus();
}

// Lists the tasks of all sizes.
void JoinTasks(const NetworkWords& words, TunedNetwork& network) {
  network.all = network.parts[0];
  network.all.shapes = words.shapes;
  std::map<Digest, size_t> known;
  for (size_t k = 0; k < network.parts.size(); ++k) {
    const NetworkArgument& part = network.parts[k];
    for (size_t t = 0; t < part.tasks.size(); ++t) {
      const auto [entry, is_new] =
          known.emplace(part.tasks[t].workload.StructuralDigest(), network.weights.size());
      if (is_new) {
        network.weights.emplace_back(network.parts.size(), 0.0);
        if (k > 0) {
          network.all.tasks.push_back(part.tasks[t]);
          network.all.partition.tasks.push_back(part.partition.tasks[t]);
        }
      } else if (k > 0) {
        network.all.partition.tasks[entry->second].weight += part.partition.tasks[t].weight;
      }
      network.weights[entry->second][k] += static_cast<double>(part.partition.tasks[t].weight);
    }
  }
}

void AddTasks(const TunedNetwork& network, v1::NetworkRequest& request) {
  request.set_name(std::filesystem::path(network.all.path).stem().string());
  for (size_t t = 0; t < network.all.tasks.size(); ++t) {
    v1::NetworkTask& task = *request.add_tasks();
    task.set_workload(network.all.tasks[t].text);
    for (const double weight : network.weights[t]) task.add_weights(weight);
  }
  if (!network.HasSizes()) return;
  // The weighted geometric mean over the sizes, so that the largest one does not get all trials.
  request.set_objective("speedup");
  for (const NetworkSize& size : network.sizes.list) {
    v1::Network& part = *request.add_networks();
    part.set_name(size.label);
    part.set_reference_ns(1);
    part.set_weight(size.weight);
  }
}

// A measurement of the whole network.
struct WholeNetwork {
  NetworkTiming timing;
  ScheduleCounts counts;
  absl::StatusOr<double> algorithm_error = 0.0;  // of ErrorOfAlgorithms
};

// Measures the network with the best kernels, if this machine can run it. `algorithms`: those of
// the tasks. `deadline`: of the time limit. `interrupted`: the user does not want to wait until
// kernels are built.
absl::StatusOr<WholeNetwork> Measure(Session& session, const NetworkArgument& network,
                                     double tolerance, absl::Span<const std::string> algorithms,
                                     bool interrupted, absl::Time deadline) {
  HONE_ASSIGN_OR_RETURN(
      const NetworkKernels loaded,
      LoadNetworkKernels(
          session, network,
          {.tolerance = tolerance, .only_confirmed = interrupted, .deadline = deadline}));
  const std::vector<network::NetworkKernel>& kernels = loaded.list;
  ProgressLine progress;
  progress.Show("timing the whole network");
  WholeNetwork measured{.timing = TimingOf(network, kernels), .counts = loaded.counts};
  const network::RunnerOptions runner{.device = session.GpuName()};
  HONE_RETURN_IF_ERROR(
      MeasureNetwork(network, kernels, runner, kMeasuringTime, measured.timing, deadline));
  progress.Show("comparing its outputs with those of strict kernels");
  // The time is worth something without the error, for which this machine needs a compiler.
  measured.algorithm_error = ErrorOfAlgorithms(session, network, kernels, algorithms, deadline);
  return measured;
}

// What is known of a size at the end of a job.
struct TunedSize {
  std::string label;
  double weight = 1;
  double estimate_ns = 0;  // the sum of its kernels; 0: one is not known
  absl::StatusOr<WholeNetwork> measured = absl::UnknownError("");
};

// Sums up the kernels of each size.
std::vector<TunedSize> SumSizes(const TunedNetwork& network, const v1::NetworkProgress& progress) {
  std::vector<TunedSize> sizes;
  for (size_t k = 0; k < network.parts.size(); ++k) {
    TunedSize& size = sizes.emplace_back();
    size.label = network.sizes.list[k].label;
    size.weight = network.sizes.list[k].weight;
    bool is_known = true;
    for (const v1::NetworkTaskProgress& task : progress.tasks()) {
      const double weight =
          static_cast<int>(k) < task.weights_size() ? task.weights(static_cast<int>(k)) : 0;
      is_known = is_known && (weight == 0 || task.latency_ns() > 0);
      size.estimate_ns += weight * task.latency_ns();
    }
    if (!is_known) size.estimate_ns = 0;
  }
  return sizes;
}

// What shows that other work disturbed the measurement; "" if nothing does.
std::string DisturbanceOf(const NetworkTiming& timing, const v1::NetworkProgress& progress) {
  return WhyDisturbed(timing, AllConfirmed(progress) ? progress.latency_ns() : 0);
}

// The number of tasks that may get trials.
absl::StatusOr<int64_t> TunedTasks(Session& session, const NetworkArgument& network,
                                   const NetworkTuneOptions& options) {
  if (!options.request.network().only_missing()) return static_cast<int64_t>(network.tasks.size());
  const auto ignore = [](const WorkloadArgument&, const std::optional<v1::Best>&) {
    return absl::OkStatus();
  };
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> unknown,
                        VisitBests(session, network.tasks, options.request.tolerance(),
                                   /*nearest=*/false, ignore));
  return static_cast<int64_t>(unknown.size());
}

// The best of each task; nullopt if none is known.
using Bests = std::vector<std::optional<v1::Best>>;

absl::StatusOr<Bests> LookUpBests(Session& session, const NetworkArgument& network,
                                  double tolerance) {
  Bests bests;
  const auto add = [&](const WorkloadArgument&, const std::optional<v1::Best>& best) {
    bests.push_back(best);
    return absl::OkStatus();
  };
  HONE_RETURN_IF_ERROR(
      VisitBests(session, network.tasks, tolerance, /*nearest=*/false, add).status());
  return bests;
}

// The algorithms of the tasks' bests (AlgorithmOf).
std::vector<std::string> AlgorithmsOf(const Bests& bests) {
  std::vector<std::string> algorithms;
  for (const std::optional<v1::Best>& best : bests) {
    algorithms.push_back(best.has_value() ? AlgorithmOf(best->trace()) : "");
  }
  return algorithms;
}

// What is known at the end of a job.
struct Tuned {
  v1::Job job;
  absl::StatusOr<WholeNetwork> measured;  // end to end
  absl::StatusOr<Bests> bests;
  std::vector<std::string> algorithms;  // of the tasks; empty without bests
  int64_t contradicted = 0;             // tasks, see ContradictedTasks
  int64_t confirmed_again = 0;          // of them
  std::vector<TunedSize> sizes;         // empty without several
};

// Shows a best as the result of a task.
void ShowAsResult(const v1::Best& best, v1::NetworkTaskProgress& task) {
  task.set_latency_ns(best.latency_ns());
  task.set_gflops(best.gflops());
  task.set_confirmed(true);
  task.set_disturbed(best.disturbed());
}

// Sums up the tasks again, after some of them have changed.
void UpdateSum(v1::NetworkProgress& network) {
  double sum = 0;
  bool confirmed = true;
  for (const v1::NetworkTaskProgress& task : network.tasks()) {
    if (!(task.latency_ns() > 0)) return;
    for (const double weight : task.weights()) sum += weight * task.latency_ns();
    confirmed = confirmed && client::LatencyIsConfirmed(task);
  }
  network.set_latency_ns(sum);
  network.set_confirmed(confirmed);
}

// Has the server confirm the tasks again whose latency the network's own profile contradicts, while
// there is time, and corrects what is shown of them.
absl::Status ConfirmAgain(Session& session, const NetworkArgument& network, absl::Time deadline,
                          Tuned& tuned) {
  if (!tuned.measured.ok() || !tuned.bests.ok()) return absl::OkStatus();
  const std::vector<size_t> tasks =
      ContradictedTasks(network, tuned.measured->timing.speed.steps, *tuned.bests);
  tuned.contradicted = static_cast<int64_t>(tasks.size());
  v1::NetworkProgress& progress = *tuned.job.mutable_network();
  for (const size_t t : tasks) {
    if (absl::Now() + kConfirmingAgain > deadline) break;
    v1::CreateJobRequest request;
    request.set_workload_digest(network.tasks[t].workload.StructuralDigest().ToHex());
    request.set_target(tuned.job.target());
    request.set_tolerance(tuned.job.request().tolerance());
    request.set_max_trials(1);
    request.set_revalidate(1);
    HONE_ASSIGN_OR_RETURN(const FollowedJob followed, RunJob(session, request));
    HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
    const v1::Job& job = followed.job;
    if (job.state() != v1::JOB_STATE_DONE || !job.has_best()) continue;
    (*tuned.bests)[t] = job.best();
    ShowAsResult(job.best(), *progress.mutable_tasks(static_cast<int>(t)));
    ++tuned.confirmed_again;
  }
  if (tuned.confirmed_again > 0) UpdateSum(progress);
  return absl::OkStatus();
}

// Says what came of the contradictions; "" if there were none.
std::string ContradictionText(const Tuned& tuned) {
  if (tuned.contradicted == 0) return "";
  const int64_t left = tuned.contradicted - tuned.confirmed_again;
  std::string text =
      absl::StrCat("in the network, ", Counted(tuned.contradicted, "task"),
                   " took less than half of the confirmed latency; ", tuned.confirmed_again,
                   tuned.confirmed_again == 1 ? " was" : " were", " measured again");
  if (left > 0) {
    absl::StrAppend(&text, ", and for the rest there was no time: ",
                    SuggestedCommandForTarget("revalidate --all"), " measures them");
  }
  return text;
}

void PrintSizes(const std::vector<TunedSize>& sizes) {
  const bool are_weighted =
      std::any_of(sizes.begin(), sizes.end(), [](const auto& size) { return size.weight != 1; });
  const auto label = [&](const TunedSize& size) {
    return are_weighted ? absl::StrCat(size.label, " (weight ", size.weight, ")") : size.label;
  };
  Table table(
      {Left("size"), Right("sum of kernels"), Right("whole network"), Right("fastest run")});
  std::string why;  // the first size that was not timed has no time
  for (const TunedSize& size : sizes) {
    const std::string sum = size.estimate_ns > 0 ? FormatLatency(size.estimate_ns) : "-";
    if (!size.measured.ok()) {
      if (why.empty())
        why = absl::StrCat(size.label, " was not timed: ", size.measured.status().message());
      table.AddRow({label(size), sum, "-", "-"});
      continue;
    }
    const NetworkTiming& timing = size.measured->timing;
    const bool is_quiet = WhyDisturbed(timing, size.estimate_ns).empty();
    table.AddRow({label(size), sum,
                  MarkUnconfirmed(FormatLatency(timing.speed.latency_ns), is_quiet),
                  FormatLatency(timing.fastest_ns)});
  }
  table.Print();
  if (!why.empty()) PrintWrapped(why);
}

// Measures each size with the best kernels.
void MeasureSizes(Session& session, const TunedNetwork& network, double tolerance, bool interrupted,
                  absl::Time deadline, std::vector<TunedSize>& sizes) {
  for (size_t k = 0; k < sizes.size(); ++k) {
    sizes[k].measured =
        Measure(session, network.parts[k], tolerance, /*algorithms=*/{}, interrupted, deadline);
  }
}

void Print(const NetworkArgument& network, const NetworkTuneOptions& options, const Tuned& tuned) {
  const v1::Job& job = tuned.job;
  const v1::NetworkProgress& progress = job.network();
  PrintWrapped(absl::StrCat(network.path, " on ", job.target(), ": ",
                            Counted(job.trials(), "trial"), " in ",
                            FormatClock(absl::Milliseconds(job.wall_ms()))));
  absl::PrintF("\n");
  PrintTasks(progress, client::HasEnded(job.state()));
  if (const std::string text = tuned.bests.ok() ? LessCertainText(*tuned.bests) : "";
      !text.empty()) {
    PrintWrapped(text);
  }
  absl::PrintF("\n");
  std::string note = NoteBesideErrors(job);
  if (!tuned.sizes.empty()) {
    PrintSizes(tuned.sizes);
    if (!note.empty()) PrintWrapped(note);
    return;
  }
  if (progress.latency_ns() > 0) {
    absl::PrintF("sum of kernels   %s", SumText(progress));
    if (progress.default_latency_ns() > 0) {
      absl::PrintF(" (default schedules %s, speed-up %s)",
                   FormatLatency(progress.default_latency_ns()),
                   FormatSpeedUp(progress.default_latency_ns(), progress.latency_ns()));
    }
    absl::PrintF("\n");
  }
  if (const auto& measured = tuned.measured; measured.ok()) {
    const NetworkTiming& timing = measured->timing;
    const std::string why = DisturbanceOf(timing, progress);
    absl::PrintF("whole network    %s (fastest run %s)\n",
                 MarkUnconfirmed(FormatLatency(timing.speed.latency_ns), why.empty()),
                 FormatLatency(timing.fastest_ns));
    if (!why.empty()) {
      // The command would time the network in f32.
      const std::string command =
          network.in_bf16 ? "" : TimingCommand(options.words, options.request.tolerance());
      PrintWrapped(absl::StrCat(
          DisturbanceText(why),
          command.empty() ? "" : "; time it again when the machine is idle: ", command));
    }
    if (const std::string text = UnconfirmedText(measured->counts); !text.empty()) {
      PrintWrapped(text);
    }
  } else if (ExitCodeFor(measured.status()) == kExitNothingKnown) {
    PrintWrapped("the whole network was not timed, because not all of its tasks are confirmed");
    // The error at the end says how many tasks have none, and how to go on.
    absl::string_view rest = note;
    if (absl::ConsumePrefix(&rest, WithoutKernelText(progress))) {
      absl::ConsumePrefix(&rest, "; ");
      note = std::string(rest);
    }
  } else {
    PrintWrapped(absl::StrCat("the whole network was not timed: ", measured.status().message()));
  }
  if (const std::string used = AlgorithmsText(tuned.algorithms); !used.empty()) {
    PrintWrapped(
        absl::StrCat("other algorithms: ", used,
                     tuned.measured.ok() ? ErrorText(tuned.measured->algorithm_error) : ""));
  }
  if (job.disturbed() > 0) PrintWrapped(DisturbedText(job));
  if (const std::string text = ContradictionText(tuned); !text.empty()) PrintWrapped(text);
  if (!note.empty()) PrintWrapped(note);
}

Json ReportJson(const NetworkArgument& network, const Tuned& tuned) {
  const v1::Job& job = tuned.job;
  Json progress = ToJson(job.network());
  for (size_t t = 0; t < progress["tasks"].size(); ++t) {
    const std::optional<v1::Best> best = tuned.bests.ok() ? (*tuned.bests)[t] : std::nullopt;
    progress["tasks"][t]["processes"] = best.has_value() ? Json(best->processes()) : Json(nullptr);
    if (!tuned.algorithms.empty()) progress["tasks"][t]["algorithm"] = tuned.algorithms[t];
  }
  Json json = {{"network", network.path},
               {"target", job.target()},
               {"job", job.id()},
               {"state", client::JobStateName(job.state())},
               {"trials", job.trials()},
               {"disturbed", job.disturbed()},
               {"wall_s", static_cast<double>(job.wall_ms()) / 1e3},
               {"latency_ns", nullptr},
               {"estimated_latency_ns", progress.at("latency_ns")},
               {"default_latency_ns", progress.at("default_latency_ns")},
               {"tasks", progress.at("tasks")},
               {"estimates", progress.at("estimates")}};
  for (const TunedSize& size : tuned.sizes) {
    Json& each = json["sizes"].emplace_back(Json{
        {"size", size.label},
        {"weight", size.weight},
        {"estimated_latency_ns", size.estimate_ns > 0 ? Json(size.estimate_ns) : Json(nullptr)},
        {"latency_ns", nullptr}});
    if (!size.measured.ok()) continue;
    const NetworkTiming& timing = size.measured->timing;
    each.update(TimingJson(timing, WhyDisturbed(timing, size.estimate_ns)));
  }
  if (tuned.measured.ok()) {
    const NetworkTiming& measured = tuned.measured->timing;
    const Json timing = TimingJson(measured, DisturbanceOf(measured, job.network()));
    for (const char* const field :
         {"threads", "latency_ns", "fastest_run_ns", "is_disturbed", "disturbance"}) {
      json[field] = timing.at(field);
    }
    const absl::StatusOr<double>& error = tuned.measured->algorithm_error;
    json["algorithm_error"] = error.ok() ? Json(*error) : Json(nullptr);
    json["schedule_count"] = ToJson(tuned.measured->counts);
    json["contradicted_count"] = tuned.contradicted;
  }
  return json;
}

absl::Status ResultOf(const NetworkArgument& network, const FollowedJob& followed,
                      double tolerance) {
  HONE_RETURN_IF_ERROR(CheckNotCancelled(followed));
  const v1::Job& job = followed.job;
  if (job.state() == v1::JOB_STATE_FAILED) {
    return absl::AbortedError(
        absl::StrCat("job ", job.id(), " failed: ", WithRepeatedOptions(job.error())));
  }
  return CheckTasks(job, TuneMissingCommand(network, tolerance));
}

// Writes the report of a job that has ended.
absl::Status Report(const NetworkArgument& network, const NetworkTuneOptions& options,
                    const Tuned& tuned) {
  HONE_RETURN_IF_ERROR(tuned.bests.status());
  NetworkReport report = MakeReport(network, tuned.job.target(), *tuned.bests, &tuned.job);
  if (tuned.measured.ok()) {
    report.measured = tuned.measured->timing;
    report.disturbance = DisturbanceOf(*report.measured, tuned.job.network());
    report.algorithm_error = tuned.measured->algorithm_error.value_or(0);
  }
  return WriteReport(report, options.report);
}

}  // namespace

std::string TooFewTrialsText(int64_t trials, int64_t tasks) {
  if (trials == 0 || trials >= tasks) return "";
  const int64_t without = tasks - trials;
  return absl::StrCat(
      "--trials ", trials, " is too few for the ", tasks, " tasks to tune: at least ", without,
      " of them ", without == 1 ? "gets" : "get",
      " no trial. A task without a trial uses the draft's schedule at the end, unless its "
      "best is already known. --trials ",
      kFewTrialsPerTask * tasks, " gives each task about ", kFewTrialsPerTask,
      " trials; without --trials and --time, each gets about ", kTrialsPerTask);
}

std::string TooLittleTimeText(int64_t time_ms, int64_t tasks) {
  const int64_t enough_s = kFewSecondsPerTask * tasks;
  if (time_ms == 0 || time_ms >= 1000 * enough_s) return "";
  return absl::StrCat("--time is short for the ", Counted(tasks, "task"),
                      " to tune: some of them may get no trial. A task without a trial uses the "
                      "draft's schedule at the end, unless its best is already known. --time ",
                      enough_s, "s gives each task about ", kFewSecondsPerTask, " s");
}

std::vector<size_t> ContradictedTasks(const NetworkArgument& network,
                                      absl::Span<const StepSpeed> steps,
                                      absl::Span<const std::optional<v1::Best>> bests) {
  std::vector<double> least_ns(network.tasks.size(), std::numeric_limits<double>::infinity());
  size_t next = 0;  // copies of outputs follow the steps with kernels
  for (const graph::Step& step : network.partition.steps) {
    if (step.kind != graph::Step::Kind::kKernel || next >= steps.size()) continue;
    const double latency_ns = steps[next++].latency_ns;
    if (latency_ns > 0) least_ns[step.task] = std::min(least_ns[step.task], latency_ns);
  }
  const auto excess = [&](size_t t) {
    return static_cast<double>(network.partition.tasks[t].weight) *
           (bests[t]->latency_ns() - least_ns[t]);
  };
  std::vector<size_t> tasks;
  for (size_t t = 0; t < bests.size(); ++t) {
    if (bests[t].has_value() && bests[t]->latency_ns() > kContradiction * least_ns[t]) {
      tasks.push_back(t);
    }
  }
  std::sort(tasks.begin(), tasks.end(), [&](size_t a, size_t b) { return excess(a) > excess(b); });
  return tasks;
}

absl::Status TuneNetwork(const Globals& globals, const NetworkTuneOptions& options) {
  HONE_RETURN_IF_ERROR(CheckReportPath(options.report));
  HONE_ASSIGN_OR_RETURN(TunedNetwork read, ReadTuned(globals, options.words));
  if (read.HasSizes() && !options.report.empty()) {
    return absl::InvalidArgumentError("--report is for one size of a network");
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  v1::CreateJobRequest request = options.request;
  HONE_ASSIGN_OR_RETURN(*request.mutable_target(), session->TargetForTuning());
  if (options.between == "bf16") {
    HONE_RETURN_IF_ERROR(StorePartsInBf16(*session, request.tolerance(), read));
  }
  JoinTasks(options.words, read);
  const NetworkArgument& network = read.all;
  HONE_ASSIGN_OR_RETURN(const int64_t tasks, TunedTasks(*session, network, options));
  if (request.max_trials() == 0 && request.max_time_ms() == 0) {
    request.set_max_trials(kTrialsPerTask * std::max<int64_t>(tasks, 1));
  }
  for (const std::string& warning : {TooFewTrialsText(request.max_trials(), tasks),
                                     TooLittleTimeText(request.max_time_ms(), tasks)}) {
    if (!warning.empty()) PrintWrapped(stderr, absl::StrCat("warning: ", warning));
  }
  AddTasks(read, *request.mutable_network());
  if (options.detach) {
    HONE_ASSIGN_OR_RETURN(const v1::Job job,
                          session->connection().CreateJob(
                              request, ExplainCreation(session->connection(), request.target())));
    if (globals.json) return PrintJson({{"jobs", Json::array({ToJson(job)})}});
    PrintWrapped(absl::StrCat("job ", job.id(), ": ", network.path, "; ",
                              SuggestedCommand("jobs watch " + job.id()), " follows it"));
    return absl::OkStatus();
  }
  const absl::Duration limit = absl::Milliseconds(request.max_time_ms());
  const absl::Time deadline =
      request.max_time_ms() > 0 ? globals.began + limit : absl::InfiniteFuture();
  HONE_ASSIGN_OR_RETURN(const std::string key, session->TargetKey());
  const absl::Duration kept =
      session->IsHere(key) ? std::min(limit * kMeasuringShare, kMostKept) : absl::ZeroDuration();
  HONE_ASSIGN_OR_RETURN(const FollowedJob followed, RunNetworkJob(*session, request, kept));
  absl::Status result = ResultOf(network, followed, request.tolerance());
  Tuned tuned{.job = followed.job,
              .measured = absl::FailedPreconditionError("this machine is another target"),
              .bests = LookUpBests(*session, network, request.tolerance())};
  if (tuned.bests.ok()) tuned.algorithms = AlgorithmsOf(*tuned.bests);
  if (read.HasSizes()) tuned.sizes = SumSizes(read, tuned.job.network());
  if (!session->IsHere(tuned.job.target())) {
    for (TunedSize& size : tuned.sizes) size.measured = tuned.measured.status();
  } else if (read.HasSizes()) {
    MeasureSizes(*session, read, request.tolerance(), followed.interrupted, deadline, tuned.sizes);
  } else {
    tuned.measured = Measure(*session, network, request.tolerance(), tuned.algorithms,
                             followed.interrupted, deadline);
    if (!followed.interrupted) result.Update(ConfirmAgain(*session, network, deadline, tuned));
  }
  if (!options.report.empty()) result.Update(Report(network, options, tuned));
  if (globals.json) return PrintJson(ReportJson(network, tuned), result);
  Print(network, options, tuned);
  return result;
}

}  // namespace hone::cli
