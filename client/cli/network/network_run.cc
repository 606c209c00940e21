#include "client/cli/network/network_run.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/network/bf16_choice.h"
#include "client/cli/network/network_kernels.h"
#include "client/cli/network/network_sizes.h"
#include "client/cli/network/network_timing.h"
#include "client/cli/network/numeric_error.h"
#include "client/cli/network/other_work.h"
#include "client/cli/npy_argument.h"
#include "client/cli/output/format.h"
#include "client/cli/output/json_output.h"
#include "client/cli/output/table.h"
#include "client/cli/output/terminal.h"
#include "client/network/onnx/tensor_file.h"
#include "client/network/plan/runner.h"
#include "common/base/clock.h"
#include "common/base/counted.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::cli {
namespace {

using graph::ValueId;

ir::Shape ShapeOf(const graph::TensorType& type) {
  return ir::Shape(type.shape.begin(), type.shape.end());
}

absl::Status CheckCounts(const NetworkArgument& network, const NetworkRunOptions& options) {
  const graph::Graph& graph = network.graph;
  const size_t outputs =
      network.tail == nullptr ? graph.outputs.size() : network.tail->outputs().size();
  const std::string described = network.tail == nullptr
                                    ? DescribeValues(graph, graph.outputs)
                                    : absl::StrJoin(network.tail->outputs(), ", ");
  const struct {
    const char* option;
    size_t given, wanted;
    std::string described;
    bool may_be_none;
  } lists[] = {
      {"--in", options.in.size(), graph.inputs.size(), DescribeValues(graph, graph.inputs), false},
      {"--out", options.out.size(), outputs, described, true},
      {"--expect", options.expect.size(), outputs, described, true}};
  for (const auto& list : lists) {
    if (list.given == list.wanted || (list.may_be_none && list.given == 0)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(network.path, " needs ", Counted(static_cast<int64_t>(list.wanted), "file"),
                     " with ", list.option, ": ", list.described, "; ", list.given,
                     list.given == 1 ? " is given" : " are given"));
  }
  return absl::OkStatus();
}

// An output of the model with its elements.
struct ModelOutput {
  graph::Value value;
  std::string bytes;
};

// The outputs of the model. `computed`: those of the graph. `tail_ns`: how long the nodes took that
// run on the host.
absl::StatusOr<std::vector<ModelOutput>> ModelOutputsOf(const NetworkArgument& network,
                                                        std::vector<std::string> computed,
                                                        int64_t& tail_ns) {
  std::vector<ModelOutput> outputs;
  tail_ns = 0;
  if (network.tail == nullptr) {
    for (size_t o = 0; o < computed.size(); ++o) {
      outputs.push_back({network.graph.value(network.graph.outputs[o]), std::move(computed[o])});
    }
    return outputs;
  }
  const absl::Time began = SteadyNow();
  HONE_ASSIGN_OR_RETURN(const std::vector<onnx::Tensor> tensors, network.tail->Run(computed));
  tail_ns = absl::ToInt64Nanoseconds(SteadyNow() - began);
  for (size_t o = 0; o < tensors.size(); ++o) {
    outputs.push_back({{.name = network.tail->outputs()[o], .type = tensors[o].type},
                       std::string(tensors[o].data.bytes())});
  }
  return outputs;
}

// Reads a tensor from a NumPy file or, if the name ends with ".pb", from an ONNX tensor file.
absl::StatusOr<std::string> ReadTensor(const std::string& path, const graph::Value& value,
                                       absl::string_view kind) {
  const std::string name = absl::StrCat(kind, " ", value.name);
  if (!absl::EndsWith(path, ".pb")) {
    return ReadNpyArgument(path, name, value.type.dtype, ShapeOf(value.type));
  }
  const absl::StatusOr<std::string> bytes = ReadFile(path);
  if (!bytes.ok()) return absl::InvalidArgumentError(bytes.status().message());
  const absl::StatusOr<onnx::NamedTensor> read = onnx::ParseTensorFile(*bytes);
  if (!read.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", read.status().message()));
  }
  if (read->tensor.type == value.type) return std::string(read->tensor.data.bytes());
  return absl::InvalidArgumentError(absl::StrCat(path, ", the ", name, ": it is ",
                                                 read->tensor.type.ToText(), ", expected ",
                                                 value.type.ToText()));
}

absl::StatusOr<std::vector<std::string>> ReadTensors(const std::vector<std::string>& paths,
                                                     const graph::Graph& graph,
                                                     const std::vector<ValueId>& ids,
                                                     absl::string_view kind) {
  std::vector<std::string> tensors;
  for (size_t i = 0; i < paths.size(); ++i) {
    HONE_ASSIGN_OR_RETURN(tensors.emplace_back(), ReadTensor(paths[i], graph.value(ids[i]), kind));
  }
  return tensors;
}

// Reads the inputs, and returns the number of the size whose shapes they have.
absl::StatusOr<size_t> ReadInputs(const NetworkSizes& sizes,
                                  const std::vector<NetworkArgument>& networks,
                                  const std::vector<std::string>& paths,
                                  std::vector<std::string>& inputs) {
  absl::Status first;
  for (size_t k = 0; k < networks.size(); ++k) {
    const graph::Graph& graph = networks[k].graph;
    absl::StatusOr<std::vector<std::string>> read =
        ReadTensors(paths, graph, graph.inputs, "input");
    if (read.ok()) {
      inputs = *std::move(read);
      return k;
    }
    if (!sizes.AreSeveral()) return read.status();
    if (k == 0) first = read.status();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the inputs fit none of the sizes ",
      absl::StrJoin(sizes.list, "; ",
                    [](std::string* text, const NetworkSize& each) { *text += each.label; }),
      "; for the first one: ", first.message()));
}

void PrintProfile(const std::vector<network::StepTime>& times) {
  int64_t total = 0;
  for (const network::StepTime& time : times) total += time.ns;
  Table table({Left("step"), Right("latency"), Right("share"), Left("kernel")});
  for (const network::StepTime& time : times) {
    table.AddRow({time.name, FormatLatency(static_cast<double>(time.ns)),
                  FormatShare(static_cast<double>(time.ns), static_cast<double>(total)),
                  time.kernel});
  }
  table.Print();
  absl::PrintF("\n");
}

Json StepsJson(const std::vector<network::StepTime>& times) {
  Json list = Json::array();
  for (const network::StepTime& time : times) {
    list.push_back({{"step", time.name}, {"kernel", time.kernel}, {"latency_ns", time.ns}});
  }
  return list;
}

// What repeated runs of a network gave.
struct MeasuredRuns {
  RepeatedRuns runs;
  std::vector<std::string> outputs;  // of the last run
  NetworkTiming timing;              // of all runs together, without steps
};

// Runs a network as often as the options say, after one run that does not count.
absl::StatusOr<MeasuredRuns> RunRepeatedly(const NetworkArgument& network, network::Runner& runner,
                                           absl::Span<const network::NetworkKernel> kernels,
                                           absl::Span<const absl::string_view> inputs,
                                           const NetworkRunOptions& options) {
  MeasuredRuns measured{.timing = TimingOf(network, kernels)};
  HONE_RETURN_IF_ERROR(RunTimed(runner, inputs, /*steps=*/false).status());
  const SystemClock clock;
  const OtherWork work(&clock);
  for (int i = 0; i < options.repeat; ++i) {
    HONE_ASSIGN_OR_RETURN(TimedRun run, RunTimed(runner, inputs, options.profile));
    measured.runs.Add(run.ns, std::move(run.steps));
    measured.outputs = std::move(run.outputs);
  }
  // The fastest run is left out: even on a quiet machine, the median of a few runs may be much
  // longer.
  NetworkTiming& timing = measured.timing;
  timing.speed.threads = runner.threads();
  timing.speed.latency_ns = measured.runs.At(0.5);
  timing.windows = 1;
  timing.interrupted =
      WasInterrupted(work.Interruptions(), runner.threads(), measured.runs.SumNs()) ? 1 : 0;
  timing.others_cores = work.Cores();
  return measured;
}

Json TimesJson(const RepeatedRuns& runs) {
  return {{"median", runs.At(0.5)}, {"p10", runs.At(0.1)}, {"p90", runs.At(0.9)}};
}

}  // namespace

absl::Status RunNetwork(const Globals& globals, const NetworkRunOptions& options) {
  std::unique_ptr<Session> session;
  HONE_ASSIGN_OR_RETURN(const NetworkSizes sizes,
                        ExpandKnownSizes(globals, options.words, session));
  HONE_ASSIGN_OR_RETURN(std::vector<NetworkArgument> networks, ReadNetworks(globals, sizes));
  HONE_RETURN_IF_ERROR(CheckCounts(networks[0], options));
  std::vector<std::string> inputs;
  HONE_ASSIGN_OR_RETURN(const size_t size, ReadInputs(sizes, networks, options.in, inputs));
  NetworkArgument& network = networks[size];
  const graph::Graph& graph = network.graph;
  // The shapes of what a tail computes are not known yet.
  std::vector<std::string> expected;
  if (network.tail == nullptr) {
    HONE_ASSIGN_OR_RETURN(expected, ReadTensors(options.expect, graph, graph.outputs, "output"));
  }
  HONE_RETURN_IF_ERROR(CheckNpyResults(options.out));

  if (session == nullptr) {
    HONE_ASSIGN_OR_RETURN(session, Session::Open(globals));
  }
  NetworkKernels loaded;
  const std::vector<absl::string_view> views(inputs.begin(), inputs.end());
  HONE_ASSIGN_OR_RETURN(const Bf16Choice bf16,
                        LoadWithBf16(*session, options.kernels, views, network, loaded));
  PrintUnconfirmed(loaded.counts);
  PrintBf16(bf16, options.kernels.tolerance, /*given_inputs=*/!inputs.empty());
  const std::vector<network::NetworkKernel>& kernels = loaded.list;
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<network::Runner> runner,
                        MakeRunner(network, kernels, {.device = session->GpuName()}));
  HONE_ASSIGN_OR_RETURN(const MeasuredRuns measured,
                        RunRepeatedly(network, *runner, kernels, views, options));
  const RepeatedRuns& runs = measured.runs;
  int64_t tail_ns = 0;
  HONE_ASSIGN_OR_RETURN(const std::vector<ModelOutput> outputs,
                        ModelOutputsOf(network, measured.outputs, tail_ns));
  if (network.tail != nullptr) {
    for (size_t o = 0; o < options.expect.size(); ++o) {
      HONE_ASSIGN_OR_RETURN(expected.emplace_back(),
                            ReadTensor(options.expect[o], outputs[o].value, "output"));
    }
  }
  const std::string disturbance = WhyDisturbed(measured.timing, SumOfKernels(network, kernels));

  double error = 0;
  std::vector<OutputComparison> comparisons;
  Json files = Json::array();
  for (size_t o = 0; o < outputs.size(); ++o) {
    const auto& [value, bytes] = outputs[o];
    const graph::TensorType& type = value.type;
    const std::string& name = value.name;
    if (!expected.empty()) {
      comparisons.push_back(CompareOutput(name, type, bytes, expected[o], options.limits));
      error = std::max(error, comparisons.back().max_error);
    }
    if (options.out.empty()) continue;
    HONE_RETURN_IF_ERROR(WriteNpyResult(options.out[o], type.dtype, ShapeOf(type), bytes));
    files.push_back({{"path", options.out[o]},
                     {"tensor", name},
                     {"dtype", std::string(ir::DTypeName(type.dtype))},
                     {"shape", type.shape}});
    if (!globals.json) absl::PrintF("%s  %s: %s\n", options.out[o], name, type.ToText());
  }
  const absl::Status result = CheckComparisons(comparisons, options.limits);
  if (globals.json) {
    Json json = {{"network", network.path},
                 {"latency_ns", TimesJson(runs)},
                 {"repeat", options.repeat},
                 {"schedule_count", ToJson(loaded.counts)},
                 {"is_disturbed", !disturbance.empty()},
                 {"disturbance", disturbance}};
    if (network.tail != nullptr) {
      json["host"] = {{"nodes", network.tail->nodes()}, {"latency_ns", tail_ns}};
    }
    if (bf16.considered) json["between"] = ToJson(bf16);
    if (!files.empty()) json["outputs"] = std::move(files);
    if (!expected.empty()) {
      json["max_error"] = error;
      json["comparisons"] = ComparisonsJson(comparisons);
    }
    if (options.profile) json["steps"] = StepsJson(runs.MedianSteps());
    return PrintJson(std::move(json), result);
  }
  if (options.profile) PrintProfile(runs.MedianSteps());
  absl::PrintF("latency   %s", MarkUnconfirmed(FormatLatency(runs.At(0.5)), disturbance.empty()));
  if (options.repeat > 1) {
    absl::PrintF(" (median of %d; p10 %s, p90 %s)", options.repeat, FormatLatency(runs.At(0.1)),
                 FormatLatency(runs.At(0.9)));
  } else {
    absl::PrintF(" (one run; --repeat 100 gives the median of more)");
  }
  absl::PrintF("\n");
  if (network.tail != nullptr) {
    absl::PrintF("host      %s (%s, once)\n", FormatLatency(static_cast<double>(tail_ns)),
                 Counted(static_cast<int64_t>(network.tail->nodes().size()), "node"));
  }
  if (!disturbance.empty()) PrintWrapped(DisturbanceText(disturbance));
  if (!expected.empty()) {
    absl::PrintF("error     %.3g of the largest expected magnitude\n", error);
  }
  for (const OutputComparison& comparison : comparisons) {
    const std::string worst = WorstText(comparison, options.limits);
    if (!worst.empty()) PrintWrapped(absl::StrCat("worst     ", worst));
  }
  return result;
}

}  // namespace hone::cli
