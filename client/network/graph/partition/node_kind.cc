#include "client/network/graph/partition/node_kind.h"

#include <algorithm>
#include <set>

#include "client/network/graph/group.h"
#include "client/network/graph/partition/views.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

// Whether a load reads the position of the result: each index is the axis of its dimension (aligned
// at the last one), or 0 in a dimension of extent 1.
bool ReadsItsPlace(const ir::Workload& workload, const ir::Stage& stage, const ir::Expr& load) {
  const ir::Shape& shape = workload.tensors[load.buffer].shape;
  const ir::IndexList& indices = workload.pool.IndicesOf(load);
  if (load.gathered >= 0 || shape.size() > stage.spatial.size()) return false;
  for (size_t d = 0; d < shape.size(); ++d) {
    const ir::Axis& axis = stage.spatial[stage.spatial.size() - shape.size() + d];
    const bool same = indices[d] == ir::Index::Of(axis.var) && shape[d] == axis.extent;
    if (!same && !(indices[d] == ir::Index(0) && shape[d] == 1)) return false;
  }
  return true;
}

bool IsElementwise(const ir::Workload& workload, const ir::Stage& stage) {
  bool elementwise = true;
  for (const ir::ExprId value : stage.values) {
    workload.pool.Visit(value, [&](const ir::Expr& expr) {
      if (expr.op == ir::Op::kWhere) elementwise = false;
      if (expr.op == ir::Op::kLoad) elementwise &= ReadsItsPlace(workload, stage, expr);
    });
  }
  return elementwise;
}

// Whether the stage is a copy that permutes its axes. Axes of extent 1 may be read at 0.
bool IsTransposition(const ir::Workload& workload, const ir::Stage& stage) {
  const ir::Expr& load = workload.pool[stage.values[0]];
  if (load.op != ir::Op::kLoad || load.gathered >= 0) return false;
  const ir::Shape& shape = workload.tensors[load.buffer].shape;
  if (shape.size() != stage.spatial.size()) return false;
  std::set<ir::AtomId> read;
  const ir::IndexList& indices = workload.pool.IndicesOf(load);
  for (size_t d = 0; d < shape.size(); ++d) {
    if (indices[d] == ir::Index(0) && shape[d] == 1) continue;
    const ir::AtomId atom = indices[d].SingleAtom();
    const auto axis = std::find_if(stage.spatial.begin(), stage.spatial.end(),
                                   [&](const ir::Axis& each) { return each.var == atom; });
    if (axis == stage.spatial.end() || axis->extent != shape[d]) return false;
    if (!read.insert(atom).second) return false;
  }
  return std::all_of(stage.spatial.begin(), stage.spatial.end(), [&](const ir::Axis& axis) {
    return axis.extent == 1 || read.contains(axis.var);
  });
}

}  // namespace

NodeKind KindOf(const ir::Workload& workload) {
  const auto all = [&](auto&& holds) {
    return std::all_of(workload.stages.begin(), workload.stages.end(), holds);
  };
  if (!all([](const ir::Stage& stage) { return stage.reducer == ir::Reducer::kNone; })) {
    return NodeKind::kAnchor;
  }
  if (all([&](const ir::Stage& stage) { return IsElementwise(workload, stage); })) {
    return NodeKind::kElementwise;
  }
  const bool permutes =
      workload.stages.size() == 1 && IsTransposition(workload, workload.stages[0]);
  return permutes ? NodeKind::kTransposition : NodeKind::kRearrangement;
}

absl::StatusOr<std::vector<NodeKind>> NodeKinds(const Graph& graph, int64_t alignment) {
  Views views(graph);
  std::vector<NodeKind> kinds;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (TakeAlias(graph, graph.nodes[n], alignment, views)) {
      kinds.push_back(NodeKind::kAlias);
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const Group group, MakeGroup(graph, {static_cast<int>(n)}, "node"));
    kinds.push_back(KindOf(group.workload));
  }
  return kinds;
}

}  // namespace hone::graph
