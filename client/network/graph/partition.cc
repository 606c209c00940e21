#include "client/network/graph/partition.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/group.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/partition/fusion.h"
#include "client/network/graph/partition/node_kind.h"
#include "client/network/graph/partition/rules.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

namespace hone::graph {
namespace {

constexpr size_t kMaxParts = 5;

// A sequence of operators that has its own name. Longer sequences come first.
struct Phrase {
  absl::string_view operators, name;
};
constexpr Phrase kPhrases[] = {
    {"reduce_mean sub pow reduce_mean add sqrt div mul add", "layer_norm"},
    {"reduce_mean sub mul reduce_mean add sqrt div mul add", "layer_norm"},
    {"reduce_mean sub pow reduce_mean add sqrt div", "normalize"},
    {"reduce_max sub exp reduce_sum div", "softmax"},
    {"div erf add mul mul", "gelu"},
    {"hard_sigmoid mul", "hard_swish"},
    {"sigmoid mul", "swish"},
};

// "BatchNormalization" → "batch_normalization", "LSTM" → "lstm".
std::string SnakeCase(absl::string_view op) {
  std::string name;
  for (size_t i = 0; i < op.size(); ++i) {
    const bool begins_word =
        i > 0 && absl::ascii_isupper(op[i]) &&
        (absl::ascii_islower(op[i - 1]) || (i + 1 < op.size() && absl::ascii_islower(op[i + 1])));
    if (begins_word) name += '_';
    name += absl::ascii_tolower(op[i]);
  }
  return name;
}

std::string NameOf(const Graph& graph, const Node& node) {
  const auto rank = [&](int input) { return graph.value(node.inputs[input]).type.shape.size(); };
  if (node.op == "MatMul" && rank(0) > 2 && rank(1) > 2) return "batch_matmul";
  if (node.op == "MatMul" || node.op == "Gemm") return absl::AsciiStrToLower(node.op);
  const std::string name = SnakeCase(node.op.substr(node.op.rfind('.') + 1));  // after its domain
  if ((name == "conv" || name == "conv_transpose" || absl::EndsWith(name, "_pool")) &&
      !absl::StartsWith(name, "global_") && rank(0) > 2) {
    const std::vector<int64_t>& image = graph.value(node.inputs[0]).type.shape;
    const int64_t channels = node.attributes.contains(kChannelsLast) ? image.back() : image[1];
    const auto group = node.attributes.find("group");
    const bool depthwise =
        group != node.attributes.end() && channels > 1 && group->second == Attribute(channels);
    return absl::StrCat(depthwise ? "depthwise_" : "", name, rank(0) - 2, "d");
  }
  return name;
}

// Replaces phrases by their names.
std::vector<std::string> Abbreviate(std::vector<std::string> parts) {
  for (const Phrase& phrase : kPhrases) {
    const std::vector<std::string> operators = absl::StrSplit(phrase.operators, ' ');
    while (true) {
      const auto found =
          std::search(parts.begin(), parts.end(), operators.begin(), operators.end());
      if (found == parts.end()) break;
      *found = std::string(phrase.name);
      parts.erase(found + 1, found + static_cast<int64_t>(operators.size()));
    }
  }
  return parts;
}

// Whether the nodes are two products with a softmax between.
bool IsAttention(const std::vector<std::string>& parts) {
  const auto is_product = [](const std::string& part) { return absl::EndsWith(part, "matmul"); };
  const auto softmax = std::find(parts.begin(), parts.end(), "softmax");
  return softmax != parts.end() && std::any_of(parts.begin(), softmax, is_product) &&
         std::any_of(softmax, parts.end(), is_product);
}

// A name for the workload of these nodes that says what it computes: "conv2d_add_relu",
// "layer_norm". It depends only on operators and ranks.
std::string WorkloadName(const Graph& graph, const std::vector<int>& nodes) {
  std::vector<std::string> parts;
  for (const int n : nodes) parts.push_back(NameOf(graph, graph.nodes[n]));
  parts = Abbreviate(std::move(parts));
  if (IsAttention(parts)) return "attention";
  if (parts.size() > kMaxParts) {
    parts.resize(kMaxParts);
    parts.push_back("more");
  }
  return absl::StrJoin(parts, "_");
}

// InvalidArgument: a node or one of its outputs is not needed.
absl::Status CheckNeeded(const Graph& graph) {
  std::vector<bool> needed(graph.values.size());
  for (const ValueId id : graph.outputs) needed[id] = true;
  for (const Node& node : graph.nodes) {
    for (const ValueId id : node.inputs) {
      if (id != kNoValue) needed[id] = true;
    }
  }
  for (const Node& node : graph.nodes) {
    bool wanted = false;
    for (const ValueId id : node.outputs) {
      if (id == kNoValue) continue;
      if (!needed[id]) {
        return absl::InvalidArgumentError(absl::StrCat("node '", node.name, "' (", node.op,
                                                       "): nothing reads its result '",
                                                       graph.value(id).name, "'"));
      }
      wanted = true;
    }
    if (!wanted) {
      return absl::InvalidArgumentError(
          absl::StrCat("node '", node.name, "' (", node.op, ") has no result"));
    }
  }
  return absl::OkStatus();
}

// Appends steps to a partition and finds their tasks.
class Builder {
 public:
  Builder(const Graph& graph, int64_t alignment) : graph_(graph) {
    partition_.alignment = alignment;
  }

  void AddAlias(int node) {
    const Node& alias = graph_.nodes[node];
    Step step{.kind = Step::Kind::kAlias, .nodes = {node}, .outputs = alias.outputs};
    std::erase(step.outputs, kNoValue);
    step.inputs = alias.inputs;
    if (alias.op != "Concat") step.inputs.resize(1);  // the other inputs are shapes
    partition_.steps.push_back(std::move(step));
  }

  // Adds the nodes as one kernel, or as several if no workload can hold them.
  absl::Status AddKernel(const std::vector<int>& nodes) {
    absl::StatusOr<Group> group = MakeGroup(graph_, nodes, WorkloadName(graph_, nodes));
    if (!group.ok()) {
      if (nodes.size() == 1) return group.status();
      const auto middle = nodes.begin() + static_cast<int64_t>(nodes.size() / 2);
      HONE_RETURN_IF_ERROR(AddKernel({nodes.begin(), middle}));
      return AddKernel({middle, nodes.end()});
    }
    const int step = static_cast<int>(partition_.steps.size());
    const int index = TaskOf(std::move(group->workload));
    Task& task = partition_.tasks[index];
    ++task.weight;
    task.steps.push_back(step);
    partition_.steps.push_back(
        {Step::Kind::kKernel, nodes, index, std::move(group->inputs), std::move(group->outputs)});
    return absl::OkStatus();
  }

  Partition Build() && { return std::move(partition_); }

 private:
  int TaskOf(ir::Workload workload) {
    const auto [entry, is_new] =
        tasks_.emplace(workload.StructuralDigest(), static_cast<int>(partition_.tasks.size()));
    if (is_new) {
      const double flops = ir::FlopCount(workload);
      partition_.tasks.push_back({.workload = std::move(workload), .flops = flops});
    }
    return entry->second;
  }

  const Graph& graph_;
  Partition partition_;
  std::map<Digest, int> tasks_;
};

}  // namespace

absl::StatusOr<Partition> MakePartition(const Graph& graph, const PartitionOptions& options) {
  HONE_RETURN_IF_ERROR(CheckNeeded(graph));
  HONE_ASSIGN_OR_RETURN(std::vector<NodeKind> kinds, NodeKinds(graph, options.alignment));
  Fusion fusion(graph, std::move(kinds), options.max_nodes);
  if (options.fuse) {
    FuseAttention(fusion);
    FuseNormalizations(fusion);
    FuseEpilogues(fusion);
    FuseOperands(fusion);
    FuseChains(fusion);
  }
  Builder builder(graph, options.alignment);
  for (const std::vector<int>& nodes : fusion.Ordered()) {
    if (fusion.kind(nodes[0]) == NodeKind::kAlias) {
      builder.AddAlias(nodes[0]);
    } else {
      HONE_RETURN_IF_ERROR(builder.AddKernel(nodes));
    }
  }
  return std::move(builder).Build();
}

}  // namespace hone::graph
