#include "client/network/graph/pass/channels_last.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/group.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/partition/node_kind.h"
#include "client/network/graph/pass/edit.h"
#include "common/base/status_macros.h"

namespace hone::graph {
namespace {

size_t RankOf(const Graph& graph, ValueId id) { return graph.value(id).type.shape.size(); }

// Whether each input can have the layout of the output, or broadcasts in any layout.
bool FitsImages(const Graph& graph, const Node& node) {
  const size_t rank = RankOf(graph, node.outputs[0]);
  return rank >= 3 && std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
           if (id == kNoValue || graph.value(id).type.elements() == 1) return true;
           return RankOf(graph, id) == rank || graph.IsConstant(id);
         });
}

bool IsReduction(const Graph& graph, const NodeView& node) {
  return absl::StartsWith(node.node().op, "Reduce") && node.Int("keepdims", 1).value_or(0) != 0 &&
         (!node.Has(1) || node.IsConstant(1)) &&
         RankOf(graph, node.node().outputs[0]) == RankOf(graph, node.node().inputs[0]);
}

LayoutRole RoleOf(const Graph& graph, int n) {
  const Node& node = graph.nodes[n];
  const NodeView view(graph, node);
  if (!view.Has(0) || !view.WantsOutput(0) || view.Rank(0) < 3) return LayoutRole::kFixed;
  const bool has_places = node.op == "MaxPool" && view.WantsOutput(1);
  if (HasKernels(node.op) || node.op == "AveragePool" || node.op == "GlobalAveragePool" ||
      node.op == "GlobalMaxPool" || (node.op == "MaxPool" && !has_places)) {
    return LayoutRole::kWindow;
  }
  if (node.op == "Concat" || node.op == "Split") return LayoutRole::kAlongAxis;
  if (IsReduction(graph, view)) return LayoutRole::kReduction;
  if (node.op == "Pad") {
    return view.IsConstant(1) && !view.Has(3) ? LayoutRole::kPad : LayoutRole::kFixed;
  }
  if (view.HasAttribute("axis") || !FitsImages(graph, node)) return LayoutRole::kFixed;
  const absl::StatusOr<Group> group = MakeGroup(graph, {n}, "node");
  if (!group.ok() || KindOf(group->workload) != NodeKind::kElementwise) return LayoutRole::kFixed;
  // An integer input that no stage reads may contain numbers of dimensions.
  const bool reads_all = std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    return id == kNoValue || graph.value(id).type.dtype != ir::DType::kI64 ||
           std::count(group->inputs.begin(), group->inputs.end(), id) > 0;
  });
  return reads_all || node.op == "Clip" ? LayoutRole::kElementwise : LayoutRole::kFixed;
}

}  // namespace

std::vector<LayoutRole> LayoutRoles(const Graph& graph) {
  const std::vector<std::vector<int>> readers = graph.Consumers();
  const auto is_needed = [&](ValueId id) {
    return id != kNoValue &&
           (!readers[id].empty() || std::count(graph.outputs.begin(), graph.outputs.end(), id) > 0);
  };
  std::vector<LayoutRole> roles;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const std::vector<ValueId>& outputs = graph.nodes[n].outputs;
    const bool needed = std::all_of(outputs.begin(), outputs.end(), is_needed);
    roles.push_back(needed ? RoleOf(graph, static_cast<int>(n)) : LayoutRole::kFixed);
  }
  return roles;
}

bool IsImage(const Graph& graph, const Node& node, LayoutRole role, size_t input) {
  const ValueId id = node.inputs[input];
  if (id == kNoValue) return false;
  if (role == LayoutRole::kElementwise) return graph.value(id).type.elements() != 1;
  return input == 0 || (role == LayoutRole::kAlongAxis && node.op == "Concat");
}

namespace {

using Ints = std::vector<int64_t>;

// The dimensions of an image, or of a kernel, in the order of channels last.
Ints ImageOrder(int64_t rank) {
  Ints order = {0};
  for (int64_t d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  return order;
}
Ints KernelOrder(int64_t rank) {
  Ints order;
  for (int64_t d = 2; d < rank; ++d) order.push_back(d);
  order.push_back(1);
  order.push_back(0);
  return order;
}
Ints Inverse(const Ints& order) {
  Ints inverse(order.size());
  for (size_t d = 0; d < order.size(); ++d) inverse[order[d]] = static_cast<int64_t>(d);
  return inverse;
}

TensorType Permuted(const TensorType& type, const Ints& order) {
  TensorType permuted{.dtype = type.dtype};
  for (const int64_t d : order) permuted.shape.push_back(type.shape[d]);
  return permuted;
}

class LayoutWriter {
 public:
  explicit LayoutWriter(Graph& graph)
      : graph_(graph),
        last_(graph.values.size(), kNoValue),
        has_first_(graph.values.size(), true) {}

  absl::Status Write(const std::vector<LayoutRole>& roles, const std::vector<bool>& marked) {
    const std::vector<Node> nodes = std::move(graph_.nodes);
    graph_.nodes.clear();
    for (size_t n = 0; n < nodes.size(); ++n) {
      if (marked[n]) {
        HONE_RETURN_IF_ERROR(AddLast(nodes[n], roles[n]));
      } else {
        for (const ValueId id : nodes[n].inputs) NeedFirst(id);
        graph_.nodes.push_back(nodes[n]);
      }
    }
    for (const ValueId id : graph_.outputs) NeedFirst(id);
    return absl::OkStatus();
  }

 private:
  void Transpose(ValueId from, ValueId to, const Ints& order, absl::string_view what) {
    const std::string name = absl::StrCat(graph_.value(from).name, what);
    graph_.nodes.push_back({name, "Transpose", {from}, {to}, {{"perm", order}}});
  }

  void Grow() {
    last_.resize(graph_.values.size(), kNoValue);
    has_first_.resize(graph_.values.size(), true);
  }

  // Makes a value available with channels first.
  void NeedFirst(ValueId id) {
    if (id == kNoValue || has_first_[id]) return;
    has_first_[id] = true;
    Transpose(last_[id], id, Inverse(ImageOrder(Rank(id))), ".channels_first");
  }

  int64_t Rank(ValueId id) const {
    return static_cast<int64_t>(graph_.value(id).type.shape.size());
  }

  ValueId AddLike(ValueId id, const Ints& order) {
    const Value& value = graph_.value(id);
    const TensorType type = Permuted(value.type, order);
    return graph_.AddValue(FreshName(graph_, absl::StrCat(value.name, ".channels_last")), type);
  }

  // Returns a value with its dimensions reordered: a new constant, or the result of a Transpose.
  ValueId InOrder(ValueId id, const Ints& order) {
    if (graph_.IsConstant(id)) return AddPermuted(graph_, id, graph_.value(id).type.shape, order);
    const ValueId permuted = AddLike(id, order);
    NeedFirst(id);
    Transpose(id, permuted, order, ".channels_last");
    return permuted;
  }

  // Returns an image with channels last. A constant gets the rank that it is broadcast to.
  ValueId Last(ValueId id, int64_t rank) {
    ValueId last = last_[id];
    if (Rank(id) < rank) {
      Ints shape = graph_.value(id).type.shape;
      shape.insert(shape.begin(), rank - Rank(id), 1);
      // Not stored in last_, because another reader may need another rank.
      last = AddPermuted(graph_, id, shape, ImageOrder(rank));
    } else if (last == kNoValue) {
      last = InOrder(id, ImageOrder(rank));
      last_[id] = last;
    }
    Grow();
    return last;
  }

  absl::Status AddLast(Node node, LayoutRole role) {
    const int64_t rank = Rank(node.outputs[0]);
    const Node first = node;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (IsImage(graph_, first, role, i)) {
        node.inputs[i] = Last(node.inputs[i], rank);
      } else {
        NeedFirst(node.inputs[i]);
      }
    }
    switch (role) {
      case LayoutRole::kWindow:
        node.attributes[kChannelsLast] = int64_t{1};
        if (HasKernels(node.op)) node.inputs[1] = InOrder(node.inputs[1], KernelOrder(rank));
        break;
      case LayoutRole::kAlongAxis: {
        HONE_ASSIGN_OR_RETURN(const int64_t axis,
                              NodeView(graph_, first).AxisAttribute("axis", 0, rank));
        node.attributes["axis"] = Inverse(ImageOrder(rank))[axis];
        break;
      }
      case LayoutRole::kReduction:
        if (NodeView(graph_, first).Has(1)) {
          HONE_ASSIGN_OR_RETURN(Ints axes, NodeView(graph_, first).Ints(1));
          for (int64_t& axis : axes)
            axis = Inverse(ImageOrder(rank))[axis < 0 ? axis + rank : axis];
          node.inputs[1] = AddInts(graph_, absl::StrCat(node.name, ".axes"), axes);
        }
        break;
      case LayoutRole::kPad: {
        HONE_ASSIGN_OR_RETURN(const Ints pads, NodeView(graph_, first).Ints(1));
        Ints reordered;
        for (const int64_t side : {0, 1}) {  // all begins, then all ends
          for (const int64_t d : ImageOrder(rank)) reordered.push_back(pads[side * rank + d]);
        }
        node.inputs[1] = AddInts(graph_, absl::StrCat(node.name, ".pads"), reordered);
        break;
      }
      case LayoutRole::kElementwise:
      case LayoutRole::kFixed:
        break;
    }
    for (ValueId& id : node.outputs) {
      if (id == kNoValue) continue;
      has_first_[id] = false;
      id = last_[id] = AddLike(id, ImageOrder(rank));
    }
    Grow();
    graph_.nodes.push_back(std::move(node));
    return absl::OkStatus();
  }

  Graph& graph_;
  std::vector<ValueId> last_;    // each value with channels last, or kNoValue
  std::vector<bool> has_first_;  // whether each value is available with channels first
};

}  // namespace

absl::Status WriteChannelsLast(Graph& graph, const std::vector<LayoutRole>& roles,
                               const std::vector<bool>& marked) {
  return LayoutWriter(graph).Write(roles, marked);
}

}  // namespace hone::graph
