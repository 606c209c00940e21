#include <algorithm>

#include "client/network/graph/group.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/pass/channels_last.h"
#include "client/network/graph/pass/min_cut.h"
#include "client/network/graph/pass/passes.h"
#include "common/base/status_macros.h"
#include "common/ir/workload.h"

namespace hone::graph {
namespace {

// Costs are times, expressed as the number of bytes that could be copied in that time.
constexpr int64_t kStepBytes = 20'000;  // the cost of an additional kernel
// With channels first, a convolution costs one byte for this many FLOPs: of all channels, of groups
// of channels through a window, and of each channel on its own.
constexpr double kFlopsPerByte = 40, kGroupedFlopsPerByte = 4, kDepthwiseFlopsPerByte = 1;
// Groups with fewer results than this do not fill a vector along the channels.
constexpr int64_t kVectorOfChannels = 8;
// Rows with at least this many results are read in whole vectors, so that groups need no channels
// for them.
constexpr int64_t kLongRow = 28;

// The cost of transposing an image. With one channel or one pixel there is nothing to move.
int64_t TranspositionCost(const TensorType& type) {
  const int64_t channels = type.shape[1];
  const int64_t places = type.elements() / std::max<int64_t>(1, type.shape[0] * channels);
  return channels == 1 || places <= 1 ? 0 : 2 * type.bytes() + kStepBytes;
}

bool IsAlongChannels(const Graph& graph, const Node& node) {
  const int64_t rank = static_cast<int64_t>(graph.value(node.outputs[0]).type.shape.size());
  return NodeView(graph, node).AxisAttribute("axis", 0, rank).value_or(0) == 1;
}

// Whether JoinAlongDepth() can replace a Concat if its readers allow that.
bool HasEqualParts(const Graph& graph, const Node& node) {
  return node.op == "Concat" &&
         std::all_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
           return graph.value(id).type == graph.value(node.inputs[0]).type;
         });
}

// Whether a node is a Transpose of an image that moves its last dimension after the first one or,
// if `to_last`, that one to the end. It vanishes if the image on its other side has channels last.
bool MovesChannels(const Graph& graph, const Node& node, bool to_last) {
  if (node.op != "Transpose") return false;
  const auto rank = static_cast<int64_t>(graph.value(node.inputs[0]).type.shape.size());
  if (rank < 3) return false;
  std::vector<int64_t> order = {0};
  for (int64_t d = 1; d < rank; ++d) order.push_back(to_last ? d % (rank - 1) + 1 : d);
  if (!to_last) std::rotate(order.begin() + 1, order.end() - 1, order.end());
  const absl::StatusOr<std::vector<int64_t>> given = NodeView(graph, node).IntList("perm", {});
  return given.ok() && *given == order;
}

class Assignment {
 public:
  Assignment(const Graph& graph, const std::vector<LayoutRole>& roles)
      : graph_(graph), roles_(roles) {}

  // Returns which nodes have channels last.
  std::vector<bool> Solve() {
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      cut_.AddNode();
      AddOwnCosts(static_cast<int>(n));
    }
    AddTranspositions();
    std::vector<bool> last = cut_.Solve();
    last.resize(graph_.nodes.size());
    return last;
  }

 private:
  void AddOwnCosts(int n) {
    const Node& node = graph_.nodes[n];
    switch (roles_[n]) {
      case LayoutRole::kFixed:
        cut_.AddCosts(n, 0, MinCut::kNever);
        break;
      case LayoutRole::kWindow: {
        // With channels last, vectors run over channels; rows are often too short for vectors.
        int64_t cost = graph_.value(node.inputs[0]).type.bytes();
        if (HasKernels(node.op)) {
          const absl::StatusOr<Group> group = MakeGroup(graph_, {n}, "node");
          if (group.ok()) {
            cost = static_cast<int64_t>(ir::FlopCount(group->workload) / FlopsPerByte(node));
          }
        }
        cut_.AddCosts(n, cost, 0);
        break;
      }
      case LayoutRole::kAlongAxis:
        // With channels first, the parts of a single sample are views and cost nothing.
        if (graph_.value(node.inputs[0]).type.shape[0] == 1 && IsAlongChannels(graph_, node) &&
            !HasEqualParts(graph_, node)) {
          const ValueId whole = node.op == "Concat" ? node.outputs[0] : node.inputs[0];
          cut_.AddCosts(n, 0, 2 * graph_.value(whole).type.bytes() + kStepBytes);
        }
        break;
      case LayoutRole::kElementwise:
      case LayoutRole::kPad:
      case LayoutRole::kReduction:
        break;
    }
  }

  // The rows of small images are short for vectors, and groups have few channels to share them.
  double FlopsPerByte(const Node& node) const {
    const std::vector<int64_t>& kernels = graph_.value(node.inputs[1]).type.shape;
    const int64_t groups = NodeView(graph_, node).Int("group", 1).value_or(1);
    const bool slides =
        std::any_of(kernels.begin() + 2, kernels.end(), [](int64_t taps) { return taps > 1; });
    if (groups == 1 || !slides) return kFlopsPerByte;
    if (kernels[1] == 1) return kDepthwiseFlopsPerByte;
    const bool long_rows = graph_.value(node.outputs[0]).type.shape.back() >= kLongRow;
    const bool few_channels = kernels[0] < groups * kVectorOfChannels;
    return long_rows || few_channels ? kFlopsPerByte : kGroupedFlopsPerByte;
  }

  // A value is transposed if the layout of the node that computes it differs from that of any node
  // that reads it.
  void AddTranspositions() {
    const std::vector<int> producers = graph_.Producers();
    const std::vector<std::vector<int>> readers = ReadersOfImages();
    for (ValueId id = 0; static_cast<size_t>(id) < graph_.values.size(); ++id) {
      const TensorType& type = graph_.values[id].type;
      if (graph_.values[id].constant || readers[id].empty() || type.shape.size() < 3) continue;
      const int64_t cost = TranspositionCost(type);
      if (cost == 0) continue;
      const int producer = producers[id];
      if (producer >= 0 && MovesChannels(graph_, graph_.nodes[producer], /*to_last=*/false)) {
        const int all_last = cut_.AddNode();  // on the first side if a reader is
        for (const int reader : readers[id]) cut_.AddCost(reader, all_last, MinCut::kNever);
        cut_.AddCosts(all_last, cost, 0);
        continue;
      }
      const int has_last = cut_.AddNode();  // on the second side if a reader is
      for (const int reader : readers[id]) cut_.AddCost(has_last, reader, MinCut::kNever);
      if (producer < 0) {
        cut_.AddCosts(has_last, 0, cost);
        continue;
      }
      cut_.AddCost(producer, has_last, cost);
      const int all_last = cut_.AddNode();  // on the first side if a reader is
      for (const int reader : readers[id]) cut_.AddCost(reader, all_last, MinCut::kNever);
      if (std::count(graph_.outputs.begin(), graph_.outputs.end(), id) > 0) {
        cut_.AddCosts(all_last, 0, MinCut::kNever);
      }
      cut_.AddCost(all_last, producer, cost);
    }
    for (const Node& node : graph_.nodes) {
      if (!MovesChannels(graph_, node, /*to_last=*/true) || producers[node.inputs[0]] < 0) continue;
      const TensorType& type = graph_.value(node.inputs[0]).type;
      cut_.AddCosts(producers[node.inputs[0]], TranspositionCost(type), 0);
    }
    for (const ValueId id : graph_.outputs) {
      if (producers[id] < 0 || !readers[id].empty()) continue;
      if (graph_.value(id).type.shape.size() < 3) continue;
      cut_.AddCosts(producers[id], 0, TranspositionCost(graph_.value(id).type));
    }
  }

  // The nodes that read each value as an image.
  std::vector<std::vector<int>> ReadersOfImages() const {
    std::vector<std::vector<int>> readers(graph_.values.size());
    for (size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (MovesChannels(graph_, node, /*to_last=*/true)) continue;  // see AddTranspositions
      for (size_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] == kNoValue) continue;
        if (roles_[n] != LayoutRole::kFixed && !IsImage(graph_, node, roles_[n], i)) continue;
        readers[node.inputs[i]].push_back(static_cast<int>(n));
      }
    }
    return readers;
  }

  const Graph& graph_;
  const std::vector<LayoutRole>& roles_;
  MinCut cut_;
};

}  // namespace

absl::StatusOr<bool> AssignLayouts(Graph& graph) {
  for (const Node& node : graph.nodes) {
    if (node.attributes.contains(kChannelsLast)) return false;  // assigned already
  }
  const std::vector<LayoutRole> roles = LayoutRoles(graph);
  const std::vector<bool> last = Assignment(graph, roles).Solve();
  bool changed = false;
  for (size_t n = 0; n < last.size(); ++n) {
    changed |= last[n] && roles[n] == LayoutRole::kWindow;
  }
  if (!changed) return false;
  HONE_RETURN_IF_ERROR(WriteChannelsLast(graph, roles, last));
  return true;
}

}  // namespace hone::graph
