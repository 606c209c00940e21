#include "client/cli/network/network_check.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/fleet/quiet_check.h"
#include "client/cli/network/network_check_report.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/network/network_report.h"
#include "client/cli/network/network_timing.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/progress.h"
#include "client/cli/output/terminal.h"
#include "client/cli/records/lock.h"
#include "client/cli/session.h"
#include "client/cli/suggested_command.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

constexpr int kAttempts = 3;
// The pause before the second measurement, in durations of a measurement, and the longest pause.
// The pause before the third is twice as long.
constexpr int kPause = 2;
constexpr absl::Duration kLongestPause = absl::Seconds(5);

// A network that is timed, at most kAttempts times.
class TimedNetwork {
 public:
  TimedNetwork(const NetworkArgument& network, std::vector<network::NetworkKernel> kernels,
               std::string gpu, absl::Duration time)
      : network_(network),
        kernels_(std::move(kernels)),
        gpu_(std::move(gpu)),
        time_(time),
        kernels_ns_(SumOfKernels(network, kernels_)),
        timing_(TimingOf(network, kernels_)) {}

  // Waits before it repeats a measurement, because a machine may be slow for seconds at a time.
  absl::Status Measure() {
    const absl::Duration pause = std::min(kPause * attempts_ * time_, kLongestPause);
    progress_.Show(absl::StrFormat("timing the %s, %d of at most %d times", timing_.what,
                                   ++attempts_, kAttempts),
                   /*important=*/true);
    absl::SleepFor(pause);
    const absl::Status measured =
        MeasureNetwork(network_, kernels_, {.device = gpu_}, time_, timing_);
    progress_.Clear();
    return measured;
  }
  const std::string& name() const { return network_.path; }
  bool MayRepeat() const { return attempts_ < kAttempts; }

  const NetworkTiming& timing() const { return timing_; }
  const NetworkSpeed& speed() const { return timing_.speed; }
  // Says how other work disturbed the measurements; "" if it did not.
  std::string Disturbance() const { return WhyDisturbed(timing_, kernels_ns_); }

 private:
  const NetworkArgument& network_;
  const std::vector<network::NetworkKernel> kernels_;
  const std::string gpu_;
  const absl::Duration time_;
  const double kernels_ns_;
  NetworkTiming timing_;
  int attempts_ = 0;
  ProgressLine progress_;
};

// Saves the baseline. `disturbance` says how other work disturbed its measurement; "" if it did
// not. A disturbed baseline is only saved with --even-if-disturbed, and is marked as such in the
// file.
absl::Status Save(const Globals& globals, const NetworkCheckOptions& options,
                  std::vector<NetworkSpeed> baselines, const NetworkTiming& timing,
                  const std::string& disturbance) {
  NetworkSpeed speed = timing.speed;
  speed.disturbance = disturbance;
  absl::Status result;
  std::optional<NetworkSpeed> replaced;
  if (disturbance.empty() || options.even_if_disturbed) {
    replaced = AddBaseline(speed, baselines);
    HONE_RETURN_IF_ERROR(WriteBaselines(options.baseline, baselines));
  } else {
    result = InconclusiveError(absl::StrCat(
        "no baseline was saved, because other work disturbed all ", kAttempts,
        " measurements: ", disturbance,
        ". A baseline that is too slow would hide a later slowdown. Save it when the machine is "
        "idle, or measure for longer (--time). If this machine is never idle, "
        "--even-if-disturbed saves the baseline, and each comparison with it reports the "
        "disturbance"));
  }
  if (globals.json) {
    Json json = TimingJson(timing, disturbance);
    json["baseline"] = options.baseline;
    json["saved"] = result.ok();
    return PrintJson(std::move(json), result);
  }
  if (!result.ok()) return result;
  PrintWrapped(absl::StrCat(DescribeMeasured(speed), ": ",
                            MarkUnconfirmed(FormatLatency(speed.latency_ns), disturbance.empty()),
                            ", saved as the baseline in ", options.baseline));
  if (replaced.has_value()) {
    PrintWrapped(absl::StrCat("it replaces the baseline of ",
                              FormatTime(replaced->measured_unix_ms), ", ",
                              FormatLatency(replaced->latency_ns)));
  }
  if (!disturbance.empty()) PrintWrapped(DisturbanceText(disturbance, timing.what));
  return absl::OkStatus();
}

absl::Status MeasureAndSave(const Globals& globals, const NetworkCheckOptions& options,
                            std::vector<NetworkSpeed> baselines, TimedNetwork& timed) {
  do {
    HONE_RETURN_IF_ERROR(timed.Measure());
  } while (timed.MayRepeat() && !timed.Disturbance().empty());
  return Save(globals, options, std::move(baselines), timed.timing(), timed.Disturbance());
}

// Measures and compares. Sets `comparison` if there is a baseline. NothingKnown: no baseline.
// FailedPrecondition: the network is too slow.
absl::Status MeasureAndCompare(const NetworkCheckOptions& options,
                               const std::vector<NetworkSpeed>& baselines, TimedNetwork& timed,
                               std::optional<Comparison>& comparison) {
  HONE_RETURN_IF_ERROR(timed.Measure());
  const auto baseline =
      std::find_if(baselines.begin(), baselines.end(),
                   [&](const NetworkSpeed& each) { return MeasureTheSame(each, timed.speed()); });
  if (baseline == baselines.end()) {
    return WithExitCode(
        absl::NotFoundError(absl::StrCat(options.baseline, " has no baseline for ",
                                         DescribeMeasured(timed.speed()), "; --save adds it")),
        kExitNothingKnown);
  }
  const auto compared = [&] {
    return Comparison{.timing = timed.timing(),
                      .baseline = *baseline,
                      .max_regression = options.max_regression,
                      .disturbance = timed.Disturbance()};
  };
  while (timed.MayRepeat() && !compared().Passes()) HONE_RETURN_IF_ERROR(timed.Measure());
  comparison = compared();
  return ResultOf(timed.name(), comparison->Regression(), comparison->max_regression,
                  comparison->disturbance);
}

// Writes the files for CI. Errors as for WriteFileAtomically, with kExitFailed.
absl::Status WriteCheckFiles(const NetworkCheckOptions& options, const CheckReport& report) {
  if (!options.junit.empty()) {
    HONE_RETURN_IF_ERROR(
        WithExitCode(WriteFileAtomically(options.junit, CheckJunit(report)), kExitFailed));
  }
  if (options.markdown.empty()) return absl::OkStatus();
  return WithExitCode(WriteFileAtomically(options.markdown, CheckMarkdown(report)), kExitFailed);
}

// Reads what CheckNetwork needs, and saves a baseline, or compares and sets `comparison`.
absl::Status SaveOrCompare(const Globals& globals, const NetworkCheckOptions& options,
                           std::optional<Comparison>& comparison) {
  HONE_ASSIGN_OR_RETURN(const NetworkArgument network,
                        options.operator_words.empty()
                            ? ReadNetwork(globals, options.words)
                            : ReadOperatorAsNetwork(globals, options.operator_words));
  absl::StatusOr<std::vector<NetworkSpeed>> baselines = ReadBaselines(options.baseline);
  if (absl::IsNotFound(baselines.status())) {
    if (!options.save) {
      return absl::NotFoundError(absl::StrCat(baselines.status().message(), "; --save creates it"));
    }
    baselines = std::vector<NetworkSpeed>();
  }
  HONE_RETURN_IF_ERROR(baselines.status());
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  // A baseline must not depend on what happened to be measured.
  HONE_ASSIGN_OR_RETURN(NetworkKernels kernels, LoadNetworkKernels(*session, network,
                                                                   {.tolerance = options.tolerance,
                                                                    .only_confirmed = true}));
  if (const std::string noise = NoiseNow(); !noise.empty()) {
    PrintWrapped(stderr, absl::StrCat("warning: ", noise));
  }
  TimedNetwork timed(network, std::move(kernels.list), session->GpuName(), options.time);
  return options.save ? MeasureAndSave(globals, options, *std::move(baselines), timed)
                      : MeasureAndCompare(options, *baselines, timed, comparison);
}

struct CheckWords {
  std::vector<std::string> words;
  std::string max_regression = "5%";
  std::string time = "1s";
  NetworkCheckOptions options;
};

// "3%" is 0.03.
absl::StatusOr<double> ParsePercent(absl::string_view text) {
  absl::string_view number = text;
  double percent = 0;
  if (absl::ConsumeSuffix(&number, "%") && absl::SimpleAtod(number, &percent) && percent >= 0 &&
      percent <= 1000) {
    return percent / 100;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--max-regression ", text, ": write a percentage, such as 3%"));
}

absl::Status Check(const Globals& globals, const CheckWords& words) {
  if (words.options.even_if_disturbed && !words.options.save) {
    return absl::InvalidArgumentError("--even-if-disturbed is for --save");
  }
  NetworkCheckOptions options = words.options;
  if (NamesNetwork(words.words)) {
    options.words.path = words.words[0];
  } else if (options.words.shapes.empty()) {
    options.operator_words = words.words;
  } else {
    return absl::InvalidArgumentError("--shape is for networks (FILE.onnx)");
  }
  HONE_ASSIGN_OR_RETURN(options.max_regression, ParsePercent(words.max_regression));
  HONE_ASSIGN_OR_RETURN(options.time, ParseDuration(words.time));
  return CheckNetwork(globals, options);
}

}  // namespace

absl::Status ResultOf(absl::string_view name, double regression, double max_regression,
                      absl::string_view disturbance) {
  if (regression <= max_regression) return absl::OkStatus();
  const std::string slower =
      absl::StrFormat("%s is %.1f %% slower than its baseline, and at most %g %% is allowed", name,
                      100 * regression, 100 * max_regression);
  if (disturbance.empty()) return absl::FailedPreconditionError(slower);
  return InconclusiveError(
      absl::StrCat(slower, "; other work disturbed the measurement, so check again"));
}

std::string TimingCommand(const NetworkWords& words, double tolerance) {
  const std::string name = std::filesystem::path(words.path).stem().string();
  return SuggestedCommandForTarget(absl::StrCat("check ", ToText(words), ToleranceOption(tolerance),
                                                " --save --baseline ",
                                                ShellWord(absl::StrCat(name, ".speed.json"))));
}

absl::Status CheckNetwork(const Globals& globals, const NetworkCheckOptions& options) {
  const std::string name = options.operator_words.empty()
                               ? options.words.path
                               : absl::StrJoin(options.operator_words, " ");
  HONE_RETURN_IF_ERROR(CheckReportPath(options.junit, "--junit"));
  HONE_RETURN_IF_ERROR(CheckReportPath(options.markdown, "--markdown"));
  std::optional<Comparison> comparison;
  const absl::Status result = SaveOrCompare(globals, options, comparison);
  // Before the output, which is to be the last thing that can fail.
  HONE_RETURN_IF_ERROR(WriteCheckFiles(options, {name, comparison, result}));
  if (!comparison.has_value()) return result;
  if (globals.json) return PrintJson(ToJson(*comparison, options.baseline), result);
  Print(*comparison);
  return result;
}

void AddCheck(Command& app, Globals& globals) {
  Command& command = app.AddCommand(
      "check", "Fail if a network or an operator runs slower than it did before, for CI");
  auto words = std::make_shared<CheckWords>();
  AddWorkloadWords(command, words->words, /*required=*/true, Names::kOperatorOrNetwork);
  command.Add("--baseline", words->options.baseline,
              "FILE.json with the earlier latencies, which --save writes; it may hold those of "
              "several networks, operators and machines",
              {Required(), NotEmpty()});
  command.AddFlag("--save", words->options.save,
                  "Write the latency to the baseline file instead of comparing it; an earlier "
                  "baseline of the network on this machine is replaced");
  command.AddFlag("--even-if-disturbed", words->options.even_if_disturbed,
                  "With --save, also write a latency that other work disturbed, for a machine that "
                  "is never idle. Each comparison with it reports the disturbance");
  command.Add("--max-regression", words->max_regression, "How much slower it may be, as in 3%",
              {ShowDefault(), NotEmpty(), Excludes("--save")});
  command.Add("--time", words->time, "How long to measure, as in 5s; a number alone means seconds",
              {ShowDefault(), NotEmpty()});
  command.Add("--junit", words->options.junit,
              "FILE.xml to write with the result as a test case, for CI systems",
              {NotEmpty(), Excludes("--save")});
  command.Add("--markdown", words->options.markdown,
              "FILE.md to write with the comparison, for a comment on a pull request",
              {NotEmpty(), Excludes("--save")});
  AddLocked(command, globals);
  command.Add("--tolerance", words->options.tolerance,
              "Tolerance that it was tuned with; 0 (default) is strict", {Range(0.0, 0.5)});
  AddShapes(command, words->options.words.shapes);
  Complete(
      command, globals,
      "Times the whole network on this machine, with the best known kernels of its tasks, or the "
      "best "
      "known kernel of an operator; tune it first. The latency is the smallest median of 5 "
      "consecutive runs, because other work on the "
      "machine can only slow a network down. Runs during which other programs took its cores "
      "count only if there are no others. The steps whose times changed most are listed.\n\n"
      "A network that seems too slow is timed up to three times, and the smallest latency counts. "
      "The output says whether other work disturbed the comparison; with --json, is_disturbed is "
      "true and disturbance says why. With --save, a disturbed measurement is repeated, up to "
      "three times in all. If other work disturbs all of them, nothing is saved, and the exit code "
      "is 5. With --even-if-disturbed, the smallest latency is saved together with the reason "
      "(baseline_disturbance in the JSON of a comparison).\n\n"
      "A baseline is for one file name or operator, shape of the inputs, target and number of "
      "threads. "
      "The exit code is 0 if the network is fast enough, 1 if it is too slow, and 3 if the file "
      "has no baseline for it or if a task has no known kernel. It is 5 if the network seems "
      "too slow while other work disturbs it: then check again on an idle machine. The files of "
      "--junit and --markdown are written in any case, and say which it was; in JUnit, a check "
      "that other work disturbed is skipped, and one that could not compare is an error. "
      "docs/ci.md shows a workflow.\n\n"
      "Examples:\n"
      "  hone check resnet50.onnx --baseline speed.json --save\n"
      "  hone check resnet50.onnx --baseline speed.json --max-regression 3%\n"
      "  hone check resnet50.onnx --baseline speed.json --json | jq .regression\n"
      "  hone check resnet50.onnx --baseline speed.json --locked hone.lock --markdown check.md\n"
      "  hone check matmul m=512 n=512 k=512 --baseline speed.json",
      [&globals, words] { return Check(globals, *words); });
}

}  // namespace hone::cli
