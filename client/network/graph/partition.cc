#include "client/network/graph/partition.h"

#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/network/graph/group.h"
#include "client/network/graph/partition/fusion.h"
#include "client/network/graph/partition/node_kind.h"
#include "client/network/graph/partition/rules.h"
#include "client/network/graph/partition/workload_name.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

namespace hone::graph {
namespace {

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
