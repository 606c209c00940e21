#include <algorithm>
#include <limits>
#include <optional>

#include "client/network/graph/node_view.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/operator_def.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;

struct Padding {
  ValueId input = kNoValue;
  Ints pads;  // for the dimensions after the channels: all begins, then all ends
  double value = 0;
};

// Returns the padding of a Pad if it is constant, not negative, and not of samples or channels.
std::optional<Padding> PaddingOf(const Graph& graph, const Node& node) {
  const NodeView view(graph, node);
  if (node.op != "Pad" || view.String("mode", "constant").value_or("") != "constant") {
    return std::nullopt;
  }
  const int64_t rank = view.Rank(0);
  if (view.Has(3) || rank < 3 || !view.IsConstant(1)) return std::nullopt;
  Padding padding{.input = node.inputs[0]};
  const auto pads = view.Ints(1);
  if (!pads.ok() || static_cast<int64_t>(pads->size()) != 2 * rank) return std::nullopt;
  for (int64_t i = 0; i < 2 * rank; ++i) {
    const int64_t pad = (*pads)[i];
    if (pad < 0 || (i % rank < 2 && pad != 0)) return std::nullopt;
    if (i % rank >= 2) padding.pads.push_back(pad);
  }
  if (view.Has(2)) {
    if (!view.IsConstant(2)) return std::nullopt;
    padding.value = Reals(graph, node.inputs[2])[0];
  }
  return padding;
}

// Whether a node can pad with this value itself. Sets the other attributes that `padded` then
// needs.
bool CanPad(const NodeView& view, const Ints& own_pads, double value, Node& padded) {
  const std::string& op = view.node().op;
  const std::string auto_pad = view.String("auto_pad", "NOTSET").value_or("");
  if (auto_pad != "NOTSET") return false;
  if (view.Int("ceil_mode", 0).value_or(1) != 0) return false;
  if (op == "Conv") return value == 0;
  if (op == "MaxPool") return value == -std::numeric_limits<double>::infinity();
  if (op != "AveragePool" || value != 0) return false;
  // An average counts the zeros of a Pad, so it must count all padding.
  const bool has_own = std::any_of(own_pads.begin(), own_pads.end(), [](int64_t p) { return p; });
  padded.attributes["count_include_pad"] = int64_t{1};
  return !has_own || view.Int("count_include_pad", 0).value_or(0) != 0;
}

bool FoldNode(Graph& graph, Node& node) {
  if (node.op != "Conv" && node.op != "MaxPool" && node.op != "AveragePool") return false;
  // The places of maxima are those in the padded image.
  if (NodeView(graph, node).WantsOutput(1)) return false;
  // A Conv may also read the padded image as its kernels.
  if (std::count(node.inputs.begin(), node.inputs.end(), node.inputs[0]) > 1) return false;
  const int producer = PrivateProducer(graph, node.inputs[0]);
  if (producer < 0) return false;
  const auto padding = PaddingOf(graph, graph.nodes[producer]);
  if (!padding) return false;
  if (node.attributes.contains(kChannelsLast)) return false;  // layouts come later
  const NodeView view(graph, node);
  auto pads = view.IntList("pads", Ints(padding->pads.size(), 0));
  if (!pads.ok() || pads->size() != padding->pads.size()) return false;
  Node padded = node;
  if (!CanPad(view, *pads, padding->value, padded)) return false;
  for (size_t i = 0; i < pads->size(); ++i) (*pads)[i] += padding->pads[i];
  padded.inputs[0] = padding->input;
  padded.attributes["pads"] = *pads;
  // The operator may refuse this much padding.
  const auto types = InferTypes(NodeView(graph, padded));
  if (!types.ok() || (*types)[0] != graph.value(node.outputs[0]).type) return false;
  node = std::move(padded);
  MarkRemoved(graph.nodes[producer]);
  return true;
}

}  // namespace

absl::StatusOr<bool> FoldPadding(Graph& graph) {
  for (Node& node : graph.nodes) FoldNode(graph, node);
  return EraseRemoved(graph);
}

}  // namespace hone::graph
