#include "client/network/graph/pass/bf16_tensors.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/group.h"
#include "client/network/graph/pass/edit.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// Smaller tensors stay in the caches anyway.
constexpr int64_t kLeastBytes = 4096;
constexpr int64_t kOnnxFloat = 1, kOnnxBf16 = 16;

// Whether an alias has views of its first input, of the same type, as its outputs.
bool ViewsFirstInput(const Node& node) {
  static constexpr absl::string_view kOperators[] = {"Reshape",  "Flatten", "Squeeze", "Unsqueeze",
                                                     "Identity", "Slice",   "Split"};
  return absl::c_linear_search(kOperators, node.op);
}

// The nodes of aliases.
std::vector<bool> AliasNodes(const DividedGraph& divided) {
  std::vector<bool> is_alias(divided.graph.nodes.size());
  for (const Step& step : divided.partition.steps) {
    if (step.kind == Step::Kind::kAlias) is_alias[step.nodes[0]] = true;
  }
  return is_alias;
}

// A tensor with the views of it.
class TensorWithViews {
 public:
  TensorWithViews(const DividedGraph& divided, const std::vector<bool>& is_alias,
                  const std::vector<std::vector<int>>& readers)
      : graph_(divided.graph), is_alias_(is_alias), readers_(readers) {}

  // Returns false if something else than a kernel needs the tensor or a view of it in its type.
  bool OnlyKernelsRead(ValueId id) const {
    if (IsOutput(graph_, id)) return false;
    return absl::c_all_of(readers_[id], [&](int reader) {
      if (!is_alias_[reader]) return true;
      const Node& node = graph_.nodes[reader];
      if (!ViewsFirstInput(node) || node.inputs[0] != id) return false;
      return absl::c_all_of(
          node.outputs, [&](ValueId view) { return view == kNoValue || OnlyKernelsRead(view); });
    });
  }

 private:
  const Graph& graph_;
  const std::vector<bool>& is_alias_;
  const std::vector<std::vector<int>>& readers_;
};

}  // namespace

std::vector<ValueId> TensorsBetweenKernels(const DividedGraph& divided) {
  const Graph& graph = divided.graph;
  const std::vector<bool> is_alias = AliasNodes(divided);
  const std::vector<std::vector<int>> readers = graph.Consumers();
  const TensorWithViews views(divided, is_alias, readers);
  std::vector<ValueId> tensors;
  for (const Step& step : divided.partition.steps) {
    if (step.kind != Step::Kind::kKernel) continue;
    for (const ValueId id : step.outputs) {
      const TensorType& type = graph.value(id).type;
      if (type.dtype != ir::DType::kF32 || type.bytes() < kLeastBytes) continue;
      if (!readers[id].empty() && views.OnlyKernelsRead(id)) tensors.push_back(id);
    }
  }
  return tensors;
}

namespace {

// Inserts the casts.
class Narrowing {
 public:
  Narrowing(const DividedGraph& divided, absl::Span<const ValueId> tensors)
      : source_(divided.graph),
        is_alias_(AliasNodes(divided)),
        tensors_(tensors.begin(), tensors.end()),
        graph_(divided.graph) {
    graph_.nodes.clear();
  }

  void Run() {
    for (size_t n = 0; n < source_.nodes.size(); ++n) {
      Node node = source_.nodes[n];
      if (is_alias_[n]) {
        TakeAlias(node);
        continue;
      }
      // One conversion for each reader, so that it becomes a part of the reader.
      std::map<ValueId, ValueId> converted;
      for (ValueId& id : node.inputs) {
        const auto stored = stored_.find(id);
        if (stored == stored_.end()) continue;
        const auto [at, is_new] = converted.emplace(id, kNoValue);
        if (is_new) {
          at->second = Cast(stored->second, ir::DType::kF32, kOnnxFloat, tensor_of_[id]);
        }
        id = at->second;
      }
      graph_.nodes.push_back(std::move(node));
      const std::vector<ValueId> outputs = graph_.nodes.back().outputs;
      for (const ValueId id : outputs) {
        if (id == kNoValue || !tensors_.contains(id)) continue;
        tensor_of_[id] = id;
        stored_[id] = Cast(id, ir::DType::kBF16, kOnnxBf16, id);
      }
    }
  }

  Graph& graph() { return graph_; }
  // The tensor of a node that this class added; kNoValue for other nodes.
  ValueId TensorOfCast(int node) const {
    const auto found = casts_.find(node);
    return found == casts_.end() ? kNoValue : found->second;
  }

 private:
  void TakeAlias(Node& node) {
    const auto stored = stored_.find(node.inputs[0]);
    if (stored != stored_.end()) {
      const ValueId tensor = tensor_of_[node.inputs[0]];
      node.inputs[0] = stored->second;
      for (const ValueId id : node.outputs) {
        if (id == kNoValue) continue;
        graph_.values[id].type.dtype = ir::DType::kBF16;
        stored_[id] = id;
        tensor_of_[id] = tensor;
      }
    }
    graph_.nodes.push_back(std::move(node));
  }

  ValueId Cast(ValueId id, ir::DType dtype, int64_t onnx_type, ValueId tensor) {
    const Value& value = graph_.value(id);
    const std::string name =
        FreshName(graph_, absl::StrCat(source_.value(tensor).name, ".", ir::DTypeName(dtype)));
    const TensorType type{dtype, value.type.shape};
    const ValueId result = graph_.AddValue(name, type);
    casts_[static_cast<int>(graph_.nodes.size())] = tensor;
    graph_.nodes.push_back({name, "Cast", {id}, {result}, {{"to", onnx_type}}});
    return result;
  }

  const Graph& source_;
  const std::vector<bool> is_alias_;
  const std::set<ValueId> tensors_;
  Graph graph_;
  std::map<ValueId, ValueId> stored_;     // the value in bf16 of a tensor or a view of it
  std::map<ValueId, ValueId> tensor_of_;  // the tensor of each of them
  std::map<int, ValueId> casts_;          // see TensorOfCast
};

}  // namespace

absl::StatusOr<Bf16Network> StoreInBf16(const DividedGraph& divided,
                                        absl::Span<const ValueId> tensors,
                                        const PartitionOptions& options) {
  Bf16Network network;
  network.tensors.assign(tensors.begin(), tensors.end());
  while (true) {
    Narrowing narrowing(divided, network.tensors);
    narrowing.Run();
    HONE_ASSIGN_OR_RETURN(Partition partition, MakePartition(narrowing.graph(), options));
    std::set<ValueId> refused;
    for (const Step& step : partition.steps) {
      std::set<ValueId> converted;
      for (const int node : step.nodes) converted.insert(narrowing.TensorOfCast(node));
      if (!converted.contains(kNoValue)) refused.merge(converted);
    }
    if (refused.empty()) {
      network.divided = {std::move(narrowing.graph()), std::move(partition)};
      return network;
    }
    std::erase_if(network.tensors, [&](ValueId id) { return refused.contains(id); });
  }
}

absl::StatusOr<DividedGraph> RoundOnDemand(const DividedGraph& divided,
                                           absl::Span<const ValueId> tensors) {
  DividedGraph result = divided;
  Graph& graph = result.graph;
  std::map<ValueId, ValueId> rounded;
  std::map<ValueId, std::vector<int>> nodes_of;
  const auto add = [&](absl::string_view op, ValueId tensor, std::vector<ValueId> inputs,
                       ir::DType dtype, std::map<std::string, Attribute> attributes) {
    const std::string name = FreshName(graph, absl::StrCat(graph.value(tensor).name, ".rounded"));
    const ValueId value = graph.AddValue(name, {dtype, graph.value(tensor).type.shape});
    nodes_of[tensor].push_back(static_cast<int>(graph.nodes.size()));
    graph.nodes.push_back(
        {name, std::string(op), std::move(inputs), {value}, std::move(attributes)});
    return value;
  };
  const size_t nodes = graph.nodes.size();
  for (const ValueId id : tensors) {
    const ValueId flag = graph.AddValue(
        FreshName(graph, absl::StrCat(graph.value(id).name, ".is_bf16")), {ir::DType::kBool, {1}});
    graph.inputs.push_back(flag);
    const ValueId narrow = add("Cast", id, {id}, ir::DType::kBF16, {{"to", kOnnxBf16}});
    const ValueId wide = add("Cast", id, {narrow}, ir::DType::kF32, {{"to", kOnnxFloat}});
    rounded[id] = add("Where", id, {flag, wide, id}, ir::DType::kF32, {});
  }
  const auto use_rounded = [&](std::vector<ValueId>& ids) {
    for (ValueId& id : ids) {
      if (const auto found = rounded.find(id); found != rounded.end()) id = found->second;
    }
  };
  for (size_t n = 0; n < nodes; ++n) use_rounded(graph.nodes[n].inputs);

  Partition& partition = result.partition;
  std::map<Digest, int> tasks;  // new ones
  partition.steps.clear();
  for (Task& task : partition.tasks) task.steps.clear();
  const auto add_step = [&](Step step) {
    if (step.task >= 0) {
      partition.tasks[step.task].steps.push_back(static_cast<int>(partition.steps.size()));
    }
    partition.steps.push_back(std::move(step));
  };
  for (Step step : divided.partition.steps) {
    use_rounded(step.inputs);
    const std::vector<ValueId> outputs = step.outputs;
    add_step(std::move(step));
    for (const ValueId id : outputs) {
      if (!rounded.contains(id)) continue;
      HONE_ASSIGN_OR_RETURN(Group group, MakeGroup(graph, nodes_of[id], "round_to_bf16"));
      const auto [at, is_new] = tasks.emplace(group.workload.StructuralDigest(),
                                              static_cast<int>(partition.tasks.size()));
      if (is_new) partition.tasks.push_back({.workload = std::move(group.workload)});
      ++partition.tasks[at->second].weight;
      add_step({Step::Kind::kKernel, nodes_of[id], at->second, std::move(group.inputs),
                std::move(group.outputs)});
    }
  }
  return result;
}

}  // namespace hone::graph
