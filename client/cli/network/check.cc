#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/command.h"
#include "client/cli/network/network_check.h"
#include "client/cli/output/format.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

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
      "too slow while other work disturbs it: then check again on an idle machine.\n\n"
      "Examples:\n"
      "  hone check resnet50.onnx --baseline speed.json --save\n"
      "  hone check resnet50.onnx --baseline speed.json --max-regression 3%\n"
      "  hone check resnet50.onnx --baseline speed.json --json | jq .regression\n"
      "  hone check matmul m=512 n=512 k=512 --baseline speed.json",
      [&globals, words] { return Check(globals, *words); });
}

}  // namespace hone::cli
