#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"

namespace hone::graph {
namespace {

// Returns the node if it multiplies an integer sum, converted to f32, by a constant; -1 otherwise.
int ScaledSum(const Graph& graph, int node) {
  if (node < 0 || graph.nodes[node].op != "Mul") return -1;
  const Node& mul = graph.nodes[node];
  if (!graph.IsConstant(mul.inputs[1])) return -1;
  if (graph.value(mul.inputs[1]).type.dtype != ir::DType::kF32) return -1;
  const int cast = graph.Producers()[mul.inputs[0]];
  if (cast < 0 || graph.nodes[cast].op != "Cast") return -1;
  return graph.value(graph.nodes[cast].inputs[0]).type.dtype == ir::DType::kI32 ? node : -1;
}

// Divides the factor of a sum by the scale of the QuantizeLinear that alone reads the product,
// directly or through a Relu. The scale becomes 1.
bool FoldInto(Graph& graph, Node& quantize) {
  const NodeView view(graph, quantize);
  if (view.Type(1).elements() != 1 || !view.IsConstant(1)) return false;
  const double scale = Reals(graph, quantize.inputs[1])[0];
  if (!(scale > 0) || scale == 1) return false;
  int producer = PrivateProducer(graph, quantize.inputs[0]);
  if (producer >= 0 && graph.nodes[producer].op == "Relu") {
    producer = PrivateProducer(graph, graph.nodes[producer].inputs[0]);
  }
  const int product = ScaledSum(graph, producer);
  if (product < 0) return false;
  Node& mul = graph.nodes[product];
  std::vector<double> factors = Reals(graph, mul.inputs[1]);
  for (double& factor : factors) {
    factor /= scale;
    // Infinity times a sum of 0 would be NaN.
    if (!std::isfinite(static_cast<float>(factor))) return false;
  }
  const TensorType factor_type = graph.value(mul.inputs[1]).type, scale_type = view.Type(1);
  mul.inputs[1] = AddConstant(graph, absl::StrCat(mul.name, ".factor"), factor_type, factors);
  quantize.inputs[1] = AddConstant(graph, absl::StrCat(quantize.name, ".scale"), scale_type, {1});
  return true;
}

}  // namespace

absl::StatusOr<bool> FoldScale(Graph& graph) {
  bool changed = false;
  for (Node& node : graph.nodes) {
    if (node.op == "QuantizeLinear") changed |= FoldInto(graph, node);
  }
  return changed;
}

}  // namespace hone::graph
