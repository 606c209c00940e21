#include <algorithm>

#include "absl/strings/string_view.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/quantized.h"
#include "client/network/graph/operator_def.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"

namespace hone::graph {
namespace {

// Operators that only move or select elements of their first input, so that they work on bytes as
// well as on floats. MaxPool is one of them, because its padding does not change the maximum.
constexpr absl::string_view kMoves[] = {"Flatten", "MaxPool",   "Reshape",  "Slice",
                                        "Squeeze", "Transpose", "Unsqueeze"};

bool Moves(const Node& node) {
  return std::count(std::begin(kMoves), std::end(kMoves), node.op) > 0 && node.outputs.size() == 1;
}

// Whether both nodes have the same constant scale and zero point, with one element each, and
// convert from and to the same type of bytes. An absent zero point is 0.
bool HaveSameParameters(const Graph& graph, const Node& dequantize, const Node& quantize) {
  const NodeView from(graph, dequantize), to(graph, quantize);
  const ir::DType dtype = from.Type(0).dtype;
  if (!IsByte(dtype) || graph.value(quantize.outputs[0]).type.dtype != dtype) return false;
  if (from.Type(1).elements() != 1 || to.Type(1).elements() != 1) return false;
  if (!from.IsConstant(1) || !to.IsConstant(1)) return false;
  const double scale = Reals(graph, dequantize.inputs[1])[0];
  return scale > 0 && scale == Reals(graph, quantize.inputs[1])[0] && HaveSameZeroPoint(from, to);
}

// Removes the node `quantize`, a QuantizeLinear, if it reads a DequantizeLinear with the same
// parameters, directly or through one of the operators in kMoves. Such an operator then works on
// the bytes. Returns whether the graph was changed.
bool Skip(Graph& graph, const std::vector<int>& producers, int quantize) {
  const ValueId real = graph.nodes[quantize].inputs[0];
  const int producer = producers[real];
  if (producer < 0) return false;
  const bool moves = Moves(graph.nodes[producer]);
  if (moves && PrivateProducer(graph, real) < 0) return false;
  const int dequantize = moves ? producers[graph.nodes[producer].inputs[0]] : producer;
  if (dequantize < 0 || graph.nodes[dequantize].op != "DequantizeLinear") return false;
  if (!HaveSameParameters(graph, graph.nodes[dequantize], graph.nodes[quantize])) return false;
  const ValueId bytes = graph.nodes[dequantize].inputs[0];
  if (!moves) return ReplaceBy(graph, quantize, bytes);
  Node moved = graph.nodes[producer];
  moved.inputs[0] = bytes;
  moved.outputs = graph.nodes[quantize].outputs;
  const auto types = InferTypes(NodeView(graph, moved));
  if (!types.ok() || (*types)[0] != graph.value(moved.outputs[0]).type) return false;
  MarkRemoved(graph.nodes[producer]);
  graph.nodes[quantize] = moved;
  return true;
}

}  // namespace

absl::StatusOr<bool> SkipDequantization(Graph& graph) {
  bool changed = false;
  const std::vector<int> producers = graph.Producers();
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    if (graph.nodes[n].op != "QuantizeLinear") continue;
    changed |= Skip(graph, producers, static_cast<int>(n));
  }
  EraseRemoved(graph);
  return changed;
}

}  // namespace hone::graph
