#include "client/network/graph/pass/affine.h"

#include <algorithm>
#include <cmath>

#include "client/network/graph/node_view.h"
#include "client/network/graph/pass/edit.h"

namespace hone::graph {
namespace {

std::optional<Affine> OfBatchNorm(const Graph& graph, const Node& node) {
  const auto epsilon = NodeView(graph, node).Float("epsilon", 1e-5);
  for (size_t i = 1; i < node.inputs.size(); ++i) {
    if (!graph.IsConstant(node.inputs[i])) return std::nullopt;
  }
  if (!epsilon.ok()) return std::nullopt;
  const std::vector<double> scale = Reals(graph, node.inputs[1]);
  const std::vector<double> bias = Reals(graph, node.inputs[2]);
  const std::vector<double> mean = Reals(graph, node.inputs[3]);
  const std::vector<double> variance = Reals(graph, node.inputs[4]);
  Affine affine{.input = node.inputs[0]};
  for (size_t c = 0; c < scale.size(); ++c) {
    affine.scale.push_back(scale[c] / std::sqrt(variance[c] + *epsilon));
    affine.shift.push_back(bias[c] - mean[c] * affine.scale[c]);
  }
  return affine;
}

// Returns the Affine of x op c or c op x.
std::optional<Affine> OfBinary(const Graph& graph, const Node& node, int64_t axis) {
  const bool constant_first = graph.IsConstant(node.inputs[0]);
  const ValueId input = node.inputs[constant_first ? 1 : 0];
  const TensorType& type = graph.value(node.outputs[0]).type;
  if (graph.IsConstant(input) || graph.value(input).type != type) return std::nullopt;
  const auto constant = PerChannel(graph, node.inputs[constant_first ? 0 : 1], type.shape, axis);
  if (!constant) return std::nullopt;
  Affine affine{input, std::vector<double>(constant->size(), 1), *constant};
  const auto swap_with_zero = [&] {
    affine.scale = *constant;
    affine.shift.assign(constant->size(), 0);
  };
  if (node.op == "Add") return affine;
  if (node.op == "Sub") {
    std::vector<double>& negated = constant_first ? affine.scale : affine.shift;
    for (double& element : negated) element = -element;
    return affine;
  }
  if (node.op == "Mul") {
    swap_with_zero();
    return affine;
  }
  if (node.op != "Div" || constant_first) return std::nullopt;
  swap_with_zero();
  for (double& element : affine.scale) element = 1 / element;
  return affine;
}

bool IsFinite(const std::vector<double>& elements) {
  return std::all_of(elements.begin(), elements.end(), [](double e) { return std::isfinite(e); });
}

}  // namespace

std::optional<Affine> AffineOf(const Graph& graph, const Node& node, int64_t axis) {
  std::optional<Affine> affine;
  if (node.op == "BatchNormalization") {
    if (axis == 1) affine = OfBatchNorm(graph, node);
  } else if (node.op == "Add" || node.op == "Sub" || node.op == "Mul" || node.op == "Div") {
    affine = OfBinary(graph, node, axis);
  }
  if (!affine || !IsFinite(affine->scale) || !IsFinite(affine->shift)) return std::nullopt;
  return affine;
}

std::optional<std::vector<double>> PerChannel(const Graph& graph, ValueId id,
                                              const std::vector<int64_t>& shape, int64_t axis) {
  if (!graph.IsConstant(id)) return std::nullopt;
  const std::vector<int64_t>& own = graph.value(id).type.shape;
  const int64_t missing = static_cast<int64_t>(shape.size() - own.size());
  if (missing < 0) return std::nullopt;
  for (size_t d = 0; d < own.size(); ++d) {
    if (own[d] != 1 && static_cast<int64_t>(d) + missing != axis) return std::nullopt;
  }
  std::vector<double> elements = Reals(graph, id);
  if (elements.size() == 1) elements.resize(shape[axis], elements[0]);
  if (static_cast<int64_t>(elements.size()) != shape[axis]) return std::nullopt;
  return elements;
}

}  // namespace hone::graph
