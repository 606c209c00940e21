#include "client/network/graph/partition/views.h"

#include "absl/strings/string_view.h"
#include "client/network/graph/group.h"
#include "client/network/graph/node_view.h"

namespace hone::graph {

Views::Views(const Graph& graph)
    : outside_(graph.values.size(), kNoValue), is_output_(graph.values.size()) {
  for (ValueId id = 0; static_cast<size_t>(id) < graph.values.size(); ++id) {
    bytes_.push_back(graph.value(id).type.bytes());
    views_.push_back({id, 0});
    if (graph.IsConstant(id)) outside_[id] = id;
  }
  for (const ValueId id : graph.inputs) outside_[id] = id;
  for (const ValueId id : graph.outputs) {
    if (outside_[id] != kNoValue) continue;
    outside_[id] = id;
    is_output_[id] = true;
  }
}

Views::View Views::Of(ValueId id) const {
  int64_t offset = 0;
  while (views_[id].owner != id) {
    offset += views_[id].offset;
    id = views_[id].owner;
  }
  return {id, offset};
}

bool Views::Place(ValueId part, ValueId whole, int64_t offset) {
  const View from = Of(part);
  View to = Of(whole);
  to.offset += offset;
  if (from.offset != 0 || bytes_[from.owner] != bytes_[part] || from.owner == to.owner) {
    return false;
  }
  const ValueId outside = outside_[from.owner];
  if (outside != kNoValue) {
    const bool same_memory = to.offset == 0 && bytes_[to.owner] == bytes_[from.owner];
    if (!is_output_[outside] || outside_[to.owner] != kNoValue || !same_memory) return false;
    outside_[to.owner] = outside;
  }
  views_[from.owner] = to;
  return true;
}

namespace {

bool ChangesOnlyTheShape(absl::string_view op) {
  return op == "Reshape" || op == "Flatten" || op == "Squeeze" || op == "Unsqueeze" ||
         op == "Identity";
}

// Whether the extents before an axis are 1, so that slices along it are contiguous.
bool IsOutermost(const std::vector<int64_t>& shape, int64_t axis) {
  for (int64_t d = 0; d < axis; ++d) {
    if (shape[d] != 1) return false;
  }
  return true;
}

// Places the inputs of a Concat one after the other.
bool Append(const Graph& graph, const Node& node, int64_t alignment, Views& views) {
  const ValueId whole = node.outputs[0];
  const std::vector<int64_t>& shape = graph.value(whole).type.shape;
  const auto axis =
      NodeView(graph, node).AxisAttribute("axis", 0, static_cast<int64_t>(shape.size()));
  if (!axis.ok() || !IsOutermost(shape, *axis)) return false;
  int64_t offset = 0;
  for (const ValueId part : node.inputs) {
    if (offset % alignment != 0 || !views.Place(part, whole, offset)) return false;
    offset += graph.value(part).type.bytes();
  }
  return true;
}

// The position of an element of a tensor in row-major order. The index of a dimension of extent 1
// is 0, however it is written.
ir::Index Flat(const ir::Shape& shape, absl::Span<const ir::Index> indices) {
  ir::Index flat;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    flat *= shape[d];
    flat += indices[d];
  }
  return flat;
}

// Places the outputs of a node in its input if each is a copy of consecutive elements.
bool TakeParts(const Graph& graph, const Node& node, int64_t alignment, Views& views) {
  const int n = static_cast<int>(&node - graph.nodes.data());
  const auto group = MakeGroup(graph, {n}, "part");
  if (!group.ok() || group->inputs.size() != 1) return false;
  const ir::Workload& workload = group->workload;
  if (workload.stages.size() != group->outputs.size()) return false;
  for (size_t s = 0; s < workload.stages.size(); ++s) {
    const ir::Stage& stage = workload.stages[s];
    const ir::Expr& load = workload.pool[stage.values[0]];
    if (stage.reducer != ir::Reducer::kNone || load.op != ir::Op::kLoad || load.gathered >= 0) {
      return false;
    }
    ir::IndexList axes;
    for (const ir::Axis& axis : stage.spatial) axes.push_back(ir::Index::Of(axis.var));
    ir::Index offset = Flat(workload.tensors[load.buffer].shape, workload.pool.IndicesOf(load));
    offset -= Flat(workload.tensors[stage.tensors[0]].shape, axes);
    const int64_t bytes = offset.constant() * ir::DTypeBytes(load.dtype);
    if (!offset.IsConstant() || bytes % alignment != 0) return false;
    if (!views.Place(group->outputs[s], group->inputs[0], bytes)) return false;
  }
  return true;
}

}  // namespace

bool TakeAlias(const Graph& graph, const Node& node, int64_t alignment, Views& views) {
  if (ChangesOnlyTheShape(node.op)) return views.Place(node.outputs[0], node.inputs[0], 0);
  const bool appends = node.op == "Concat";
  if (!appends && node.op != "Slice" && node.op != "Split") return false;
  Views changed = views;
  const bool taken = appends ? Append(graph, node, alignment, changed)
                             : TakeParts(graph, node, alignment, changed);
  if (!taken) return false;
  views = std::move(changed);
  return true;
}

}  // namespace hone::graph
