#include "client/cli/network/network_argument.h"

#include <algorithm>
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
#include "client/cli/output/terminal.h"
#include "client/cli/size_list.h"
#include "client/cli/suggested_command.h"
#include "client/cli/target_argument.h"
#include "client/network/graph/pass/passes.h"
#include "client/network/onnx/import.h"
#include "client/network/plan/plan.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "common/ir/workload.h"

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
    if (!legal && end != std::string::npos && NamesSeveralSizes(word.substr(end + 1))) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--shape ", word, ": several sizes are for hone tune, best, export and run; give one"));
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

// The error of a model that Hone cannot run, which is a usage error. An error that does not name
// the file gets its name.
absl::Status OfModel(const absl::Status& status, const std::string& path) {
  const std::string message = absl::StartsWith(status.message(), path)
                                  ? std::string(status.message())
                                  : absl::StrCat(path, ": ", status.message());
  const absl::Status error(status.code(), message);
  const bool is_of_model = absl::IsUnimplemented(error) || absl::IsFailedPrecondition(error) ||
                           absl::IsResourceExhausted(error);
  return is_of_model ? WithExitCode(error, kExitUsage) : error;
}

// The first --shape with an extent of 0; "" if there is none.
std::string EmptyShape(const NetworkWords& words,
                       const std::map<std::string, std::vector<int64_t>>& shapes) {
  for (const std::string& word : words.shapes) {
    const std::vector<int64_t>& shape = shapes.at(word.substr(0, word.rfind('=')));
    if (std::count(shape.begin(), shape.end(), 0) > 0) return word;
  }
  return "";
}

// Whether a network computes no element.
bool ComputesNothing(const graph::Graph& graph) {
  return std::all_of(graph.outputs.begin(), graph.outputs.end(),
                     [&](graph::ValueId id) { return graph.value(id).type.elements() == 0; });
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
  command.Add(
      "--shape", shapes,
      "Shape of an input, as NAME=1x3x224x224, for dimensions that the model leaves open; "
      "an open batch is 1 otherwise. NAME=4 also sets the dimension called NAME. May be repeated. "
      "hone tune, best, export and run also take several sizes of a dimension, at most 16: "
      "NAME=1,4,8, or NAME=1..512 for the ends and the powers of two between them. Sizes may have "
      "weights for hone tune, NAME=1:3,8:1",
      {NotEmpty()});
}

absl::StatusOr<graph::Graph> ReadGraph(const NetworkWords& words, bool warns,
                                       std::shared_ptr<const onnx::HostTail>* tail) {
  onnx::ImportOptions options;
  HONE_ASSIGN_OR_RETURN(options.shapes, ParseShapes(words.shapes));
  std::vector<std::string> warnings;
  options.warnings = &warnings;
  absl::StatusOr<onnx::ImportedModel> model = onnx::ImportOnnxWithTail(words.path, options);
  if (const std::string empty = EmptyShape(words, options.shapes);
      !empty.empty() && (!model.ok() || ComputesNothing(model->graph))) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--shape ", empty, ": an extent of 0 ",
        model.ok() ? absl::StrCat("leaves nothing to compute in ", words.path)
                   : absl::StrCat("does not fit the model: ", model.status().message())));
  }
  if (!model.ok()) return OfModel(model.status(), words.path);
  for (const std::string& warning : warnings) {
    if (!warns) break;
    PrintWrapped(stderr, absl::StrCat("warning: ", words.path, ": ", warning));
  }
  if (model->tail != nullptr && warns) {
    PrintWrapped(stderr, absl::StrCat("note: ", words.path, ": ", model->tail->Describe(),
                                      ", with as many results as their inputs say; this end of "
                                      "the model is not tuned"));
  }
  if (tail != nullptr) *tail = std::move(model->tail);
  return std::move(model->graph);
}

absl::StatusOr<NetworkArgument> ReadNetwork(const Globals& globals, const NetworkWords& words,
                                            bool warns) {
  const target::Kind kind = TargetArgument{.given = globals.target}.KindOfTarget();
  NetworkArgument network{
      .path = words.path, .shapes = words.shapes, .written = TimeOf(words.path)};
  HONE_ASSIGN_OR_RETURN(network.graph, ReadGraph(words, warns, &network.tail));
  if (const absl::Status status = graph::Optimize(network.graph); !status.ok()) {
    return OfModel(status, words.path);
  }
  absl::StatusOr<graph::Partition> partition =
      graph::MakePartition(network.graph, network::PartitionOptionsFor(kind));
  if (!partition.ok()) return OfModel(partition.status(), words.path);
  network.partition = *std::move(partition);
  network.tasks = ArgumentsOf(network.partition);
  return network;
}

std::vector<WorkloadArgument> ArgumentsOf(const graph::Partition& partition) {
  std::vector<WorkloadArgument> arguments;
  for (const graph::Task& task : partition.tasks) {
    const ir::Workload& workload = task.workload;
    arguments.push_back(
        {workload, workload.ToText(),
         absl::StrCat(workload.name, " -> ", ir::TypesOf(workload, workload.Outputs()))});
  }
  return arguments;
}

absl::StatusOr<NetworkArgument> ReadOperatorAsNetwork(const Globals& globals,
                                                      absl::Span<const std::string> words,
                                                      bool constants_are_inputs) {
  const target::Kind kind = TargetArgument{.given = globals.target}.KindOfTarget();
  HONE_ASSIGN_OR_RETURN(const WorkloadArgument argument, ReadWorkloadArgument(words));
  const ir::Workload& workload = argument.workload;
  NetworkArgument network{.path = argument.title, .tasks = {argument}, .is_operator = true};
  graph::Graph& graph = network.graph;
  graph::Node node{workload.name, workload.name, {}, {}, {}};
  Rng rng(1, 1);
  const auto type_of = [](const ir::Tensor& tensor) {
    return graph::TensorType{tensor.dtype, {tensor.shape.begin(), tensor.shape.end()}};
  };
  for (const ir::BufferId id : workload.Inputs()) {
    const ir::Tensor& tensor = workload.tensors[id];
    const graph::TensorType type = type_of(tensor);
    if (tensor.constant && !constants_are_inputs) {
      node.inputs.push_back(
          graph.AddConstant(tensor.name, type, graph::ConstantData(SomeElements(type, rng))));
    } else {
      graph.inputs.push_back(graph.AddValue(tensor.name, type));
      node.inputs.push_back(graph.inputs.back());
    }
  }
  for (const ir::BufferId id : workload.Outputs()) {
    const ir::Tensor& tensor = workload.tensors[id];
    graph.outputs.push_back(graph.AddValue(tensor.name, type_of(tensor)));
  }
  node.outputs = graph.outputs;
  graph.nodes.push_back(node);
  network.partition.alignment = network::PartitionOptionsFor(kind).alignment;
  network.partition.tasks.push_back({.workload = workload, .weight = 1, .steps = {0}});
  network.partition.steps.push_back({.kind = graph::Step::Kind::kKernel,
                                     .nodes = {0},
                                     .task = 0,
                                     .inputs = node.inputs,
                                     .outputs = node.outputs});
  return network;
}

std::string SomeElements(const graph::TensorType& type, Rng& rng) {
  std::string bytes(type.bytes(), '\0');
  if (!ir::IsFloat(type.dtype)) return bytes;
  for (int64_t i = 0; i < type.elements(); ++i) {
    const double value = static_cast<double>(rng() >> 40) * 0x1p-23 - 1;
    ir::WriteElement(type.dtype, bytes.data(), i, value);
  }
  return bytes;
}

absl::Status CheckUnchanged(const NetworkArgument& network) {
  if (TimeOf(network.path) == network.written) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(network.path, " was changed while this command used it; run the command again"));
}

namespace {

std::string TuneWords(const NetworkArgument& network, double tolerance) {
  return absl::StrCat("tune ", ToText({network.path, network.shapes}), ToleranceOption(tolerance),
                      network.in_bf16 ? " --between bf16" : "");
}

}  // namespace

std::string TuneMissingCommand(const NetworkArgument& network, double tolerance) {
  return SuggestedMeasurement(absl::StrCat(TuneWords(network, tolerance), " --only-missing"));
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
  return NothingKnownError(absl::StrCat(what, "find ", them, " with: ",
                                        unknown < tasks || running.has_value()
                                            ? TuneMissingCommand(network, tolerance)
                                            : SuggestedMeasurement(TuneWords(network, tolerance)),
                                        hint));
}

std::string DescribeValues(const graph::Graph& graph, const std::vector<graph::ValueId>& ids) {
  return absl::StrJoin(ids, ", ", [&](std::string* text, graph::ValueId id) {
    absl::StrAppend(text, graph.value(id).name, ": ", graph.value(id).type.ToText());
  });
}

}  // namespace hone::cli
