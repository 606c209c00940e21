#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"

namespace hone::graph {
namespace {

// Whether the zero point of a node is absent or a constant, so that a new one can be computed.
bool HasKnownZeroPoint(const Graph& graph, const Node& node) {
  const NodeView view(graph, node);
  return !view.Has(2) || view.IsConstant(2);
}

// Whether the result of a QuantizeLinear is i8 and only DequantizeLinear nodes read it.
bool CanBeUnsigned(const Graph& graph, const Node& quantize, const std::vector<int>& readers) {
  const ValueId bytes = quantize.outputs[0];
  if (graph.value(bytes).type.dtype != ir::DType::kI8 || !HasKnownZeroPoint(graph, quantize)) {
    return false;
  }
  if (std::count(graph.outputs.begin(), graph.outputs.end(), bytes) > 0) return false;
  return std::all_of(readers.begin(), readers.end(), [&](int reader) {
    const Node& node = graph.nodes[reader];
    return node.op == "DequantizeLinear" && node.inputs[0] == bytes &&
           HasKnownZeroPoint(graph, node);
  });
}

// Adds 128 to the zero point, which becomes u8.
void ShiftZeroPoint(Graph& graph, Node& node) {
  TensorType type = graph.value(node.inputs[1]).type;
  std::vector<double> elements(type.elements(), 0);
  if (NodeView(graph, node).Has(2)) elements = Reals(graph, node.inputs[2]);
  for (double& element : elements) element += 128;
  type.dtype = ir::DType::kU8;
  node.inputs.resize(3);
  node.inputs[2] = AddConstant(graph, absl::StrCat(node.name, ".zero_point"), type, elements);
}

}  // namespace

absl::StatusOr<bool> UseUnsignedBytes(Graph& graph) {
  bool changed = false;
  const std::vector<std::vector<int>> consumers = graph.Consumers();
  for (Node& node : graph.nodes) {
    if (node.op != "QuantizeLinear") continue;
    const ValueId bytes = node.outputs[0];
    if (!CanBeUnsigned(graph, node, consumers[bytes])) continue;
    ShiftZeroPoint(graph, node);
    node.attributes.erase("output_dtype");
    graph.values[bytes].type.dtype = ir::DType::kU8;
    for (const int reader : consumers[bytes]) ShiftZeroPoint(graph, graph.nodes[reader]);
    changed = true;
  }
  return changed;
}

}  // namespace hone::graph
