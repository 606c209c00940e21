#include "client/cli/network_argument.h"

#include <cstdint>
#include <map>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/cli/exit_code.h"
#include "client/cli/shell_word.h"
#include "client/cli/suggested_command.h"
#include "client/cli/target_argument.h"
#include "client/network/partition_options.h"
#include "client/onnx/import.h"
#include "common/base/status_macros.h"
#include "common/graph/pass/passes.h"
#include "common/ir/signature.h"

namespace hone::cli {
namespace {

std::optional<std::filesystem::file_time_type> TimeOf(const std::string& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  return error ? std::nullopt : std::make_optional(time);
}

// Parses the values of --shape. Returns the shapes by the name of an input or a dimension.
absl::StatusOr<std::map<std::string, std::vector<int64_t>>> ParseShapes(
    const std::vector<std::string>& words) {
  std::map<std::string, std::vector<int64_t>> shapes;
  for (const std::string& word : words) {
    const size_t end = word.rfind('=');  // the name may contain =
    std::vector<int64_t> shape;
    bool legal = end != std::string::npos && end > 0;
    if (legal) {
      for (const absl::string_view extent : absl::StrSplit(word.substr(end + 1), 'x')) {
        shape.push_back(0);
        legal = legal && absl::SimpleAtoi(extent, &shape.back()) && shape.back() >= 0;
      }
    }
    if (!legal) {
      return absl::InvalidArgumentError(
          absl::StrCat("--shape ", word, ": give the name of an input and its extents, as in ",
                       "--shape x=1x3x224x224"));
    }
    if (shapes.emplace(word.substr(0, end), std::move(shape)).second) continue;
    return absl::InvalidArgumentError(absl::StrCat("--shape ", word, ": the shape is given twice"));
  }
  return shapes;
}

}  // namespace

std::string ToText(const NetworkWords& words) {
  std::string text = ShellWord(words.path);
  for (const std::string& shape : words.shapes) {
    absl::StrAppend(&text, " --shape ", ShellWord(shape));
  }
  return text;
}

void AddShapes(Command& command, std::vector<std::string>& shapes) {
  command.Add("--shape", shapes,
              "Shape of an input, as NAME=1x3x224x224, for dimensions that the model leaves open; "
              "NAME=4 also sets the dimension called NAME. May be repeated",
              {NotEmpty()});
}

absl::StatusOr<graph::Graph> ReadGraph(const NetworkWords& words) {
  onnx::ImportOptions options;
  HONE_ASSIGN_OR_RETURN(options.shapes, ParseShapes(words.shapes));
  return onnx::ImportOnnx(words.path, options);
}

absl::StatusOr<NetworkArgument> ReadNetwork(const Globals& globals, const NetworkWords& words) {
  const target::Kind kind = TargetArgument{.given = globals.target}.KindOfTarget();
  NetworkArgument network{
      .path = words.path, .shapes = words.shapes, .written = TimeOf(words.path)};
  HONE_ASSIGN_OR_RETURN(network.graph, ReadGraph(words));
  HONE_RETURN_IF_ERROR(graph::Optimize(network.graph));
  HONE_ASSIGN_OR_RETURN(network.partition,
                        graph::MakePartition(network.graph, network::PartitionOptionsFor(kind)));
  for (const graph::Task& task : network.partition.tasks) {
    const ir::Workload& workload = task.workload;
    network.tasks.push_back(
        {workload, workload.ToText(),
         absl::StrCat(workload.name, " -> ", ir::TypesOf(workload, workload.Outputs()))});
  }
  return network;
}

absl::Status CheckUnchanged(const NetworkArgument& network) {
  if (TimeOf(network.path) == network.written) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(network.path, " was changed while this command used it; run the command again"));
}

std::string TuneMissingCommand(const NetworkArgument& network, double tolerance) {
  return SuggestedMeasurement(absl::StrCat("tune ", ToText({network.path, network.shapes}),
                                           ToleranceOption(tolerance), " --only-missing"));
}

absl::Status CheckNetworkKnown(const NetworkArgument& network, size_t unknown,
                               const std::string& target, double tolerance,
                               const std::optional<RunningJob>& running, absl::string_view hint) {
  if (unknown == 0) return absl::OkStatus();
  const size_t tasks = network.tasks.size();
  const std::string which = tasks == 1
                                ? "the only task"
                                : absl::StrCat(unknown < tasks ? absl::StrCat(unknown) : "any",
                                               " of the ", tasks, " tasks");
  std::string what = absl::StrCat("no confirmed schedule is known for ", which, " of ",
                                  network.path, " on ", target, "; ");
  if (running.has_value()) {
    absl::StrAppend(&what, RunningJobText(*running, unknown));
    if (running->tuned == unknown) return NothingKnownError(absl::StrCat(what, hint));
    absl::StrAppend(&what, "; ");
  }
  const absl::string_view them = running.has_value() ? "the rest" : unknown == 1 ? "it" : "them";
  return NothingKnownError(absl::StrCat(
      what, "find ", them, " with: ",
      unknown < tasks || running.has_value()
          ? TuneMissingCommand(network, tolerance)
          : SuggestedMeasurement(absl::StrCat("tune ", ToText({network.path, network.shapes}),
                                              ToleranceOption(tolerance))),
      hint));
}

std::string DescribeValues(const graph::Graph& graph, const std::vector<graph::ValueId>& ids) {
  return absl::StrJoin(ids, ", ", [&](std::string* text, graph::ValueId id) {
    absl::StrAppend(text, graph.value(id).name, ": ", graph.value(id).type.ToText());
  });
}

}  // namespace hone::cli
