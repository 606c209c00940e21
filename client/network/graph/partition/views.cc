#include "client/network/graph/partition/views.h"

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

}  // namespace hone::graph
