#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"
#include "common/ir/dtype.h"

namespace hone::graph {
namespace {

// A node that multiplies each channel of a tensor by a constant and adds another.
struct Affine {
  ValueId input = kNoValue;
  std::vector<double> scale, shift;  // per channel
};

// Returns the element of a constant for each channel of a tensor of this shape, to which it
// broadcasts. nullopt if the value is not constant or varies within a channel.
std::optional<std::vector<double>> PerChannel(const Graph& graph, ValueId id,
                                              const std::vector<int64_t>& shape, int64_t axis);

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

// Returns the node as an Affine, computed in f64, with the channels along `axis` of its result.
// nullopt if it is another kind of node, or its constants vary within a channel or are not finite.
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

bool IsAll(const std::vector<double>& elements, double value) {
  return std::all_of(elements.begin(), elements.end(), [&](double e) { return e == value; });
}

// Whether a number does not overflow in a float type.
bool Fits(ir::DType dtype, double number) { return std::isfinite(ir::RoundTo(dtype, number)); }

bool IsConvolution(const Node& node) { return node.op == "Conv" || node.op == "ConvTranspose"; }

// The dimension of a product's result that holds the channels.
int64_t ChannelAxis(const Graph& graph, const Node& product) {
  if (IsConvolution(product) && !product.attributes.contains(kChannelsLast)) return 1;
  return static_cast<int64_t>(graph.value(product.outputs[0]).type.shape.size()) - 1;
}

// Whether a node is a product with constant float weights, each of which belongs to one channel.
bool HasWeights(const Graph& graph, const Node& node) {
  if (!IsConvolution(node) && node.op != "Gemm" && node.op != "MatMul") return false;
  const Value& weights = graph.value(node.inputs[1]);
  if (!weights.constant || !ir::IsFloat(weights.type.dtype)) return false;
  return IsConvolution(node) || weights.type.shape.size() == 2;
}

// Maps elements of weights to output channels.
class WeightChannels {
 public:
  WeightChannels(const Graph& graph, const Node& node) {
    const std::vector<int64_t>& shape = graph.value(node.inputs[1]).type.shape;
    const NodeView view(graph, node);
    bool channels_first = node.op == "Conv";
    if (node.attributes.contains(kChannelsLast)) {
      // The channels are last, in all rows.
      channels_ = shape.back();
      for (size_t d = 0; d + 1 < shape.size(); ++d) rows_ *= shape[d];
      return;
    }
    if (node.op == "Gemm") channels_first = view.Int("transB", 0).value_or(0) != 0;
    if (!channels_first) rows_ = shape[0];
    channels_ = channels_first ? shape[0] : shape[1];
    for (size_t d = channels_first ? 1 : 2; d < shape.size(); ++d) inner_ *= shape[d];
    if (node.op == "ConvTranspose") groups_ = view.Int("group", 1).value_or(1);
  }

  // The weights, each multiplied by the scale of its channel.
  std::string Scaled(ir::DType dtype, absl::string_view weights,
                     const std::vector<double>& scale) const {
    std::string scaled(weights.size(), '\0');
    VisitRuns(scale, [&](int64_t begin, int64_t end, double factor) {
      for (int64_t at = begin; at < end; ++at) {
        const double weight = ir::ReadElement(dtype, weights.data(), at).real();
        ir::WriteElement(dtype, scaled.data(), at, weight * factor);
      }
    });
    return scaled;
  }

  // Whether no scaled weight overflows. Reads only the weights that may, because reading means
  // loading or computing them: in practice those of f16 that grow.
  bool FitScaled(ir::DType dtype, const ConstantData& weights,
                 const std::vector<double>& scale) const {
    constexpr double kBeyondAllWeights = 0x1p64;  // of any network
    const auto may_overflow = [&](double factor) {
      return std::abs(factor) > 1 && !Fits(dtype, factor * kBeyondAllWeights);
    };
    if (std::none_of(scale.begin(), scale.end(), may_overflow)) return true;
    const char* const data = weights.bytes().data();
    bool fit = true;
    VisitRuns(scale, [&](int64_t begin, int64_t end, double factor) {
      if (!may_overflow(factor)) return;
      for (int64_t at = begin; fit && at < end; ++at) {
        fit = Fits(dtype, ir::ReadElement(dtype, data, at).real() * factor);
      }
    });
    return fit;
  }

  // Identifies what Scaled() computes.
  Digest Recipe(const ConstantData& weights, const std::vector<double>& scale) const {
    DigestBuilder recipe;
    recipe.Add("scaled").Add(weights.origin());
    for (const int64_t extent : {rows_, channels_, inner_, groups_}) recipe.Add(extent);
    for (const double factor : scale) recipe.Add(factor);
    return recipe.Finish();
  }

 private:
  // Visits the positions of consecutive weights of one channel, with its scale.
  void VisitRuns(const std::vector<double>& scale,
                 absl::FunctionRef<void(int64_t begin, int64_t end, double factor)> visit) const {
    int64_t at = 0;
    for (int64_t row = 0; row < rows_; ++row) {
      for (int64_t channel = 0; channel < channels_; ++channel, at += inner_) {
        visit(at, at + inner_, scale[row / (rows_ / groups_) * channels_ + channel]);
      }
    }
  }

  // The weights are [rows, channels, inner]. The rows are divided among the groups of a transposed
  // convolution.
  int64_t rows_ = 1, channels_ = 1, inner_ = 1, groups_ = 1;
};

// Whether the weights of a product, multiplied by a scale per channel, and its new bias are finite
// in their types. A network in f16 may scale its results by factors that its weights cannot take.
bool FoldedFits(const Graph& graph, const Node& product, const std::vector<double>& scale,
                const std::vector<double>& bias) {
  const ir::DType result = graph.value(product.outputs[0]).type.dtype;
  if (!std::all_of(bias.begin(), bias.end(), [&](double b) { return Fits(result, b); })) {
    return false;
  }
  const Value& weights = graph.value(product.inputs[1]);
  return WeightChannels(graph, product).FitScaled(weights.type.dtype, *weights.constant, scale);
}

// Adds the scaled weights of a product. They are computed only when they are read, because listing
// the tasks of a network does not need them.
ValueId ScaledWeights(Graph& graph, const Node& product, const std::vector<double>& scale) {
  const Value weights = graph.value(product.inputs[1]);
  const WeightChannels channels(graph, product);
  const auto compute = [=, dtype = weights.type.dtype, data = *weights.constant] {
    return channels.Scaled(dtype, data.bytes(), scale);
  };
  return AddConstant(graph, absl::StrCat(weights.name, ".scaled"), weights.type,
                     ConstantData::Computed(channels.Recipe(*weights.constant, scale),
                                            weights.type.bytes(), compute));
}

// The bias per channel, or zeros if there is no bias; nullopt if it is not a constant per channel.
std::optional<std::vector<double>> BiasOf(const Graph& graph, const Node& product, int64_t axis) {
  const std::vector<int64_t>& shape = graph.value(product.outputs[0]).type.shape;
  const NodeView view(graph, product);
  if (!view.Has(2)) return std::vector<double>(shape[axis], 0);
  if (IsConvolution(product)) {
    if (!graph.IsConstant(product.inputs[2])) return std::nullopt;
    return Reals(graph, product.inputs[2]);
  }
  auto bias = PerChannel(graph, product.inputs[2], shape, axis);
  if (!bias) return std::nullopt;
  const double beta = view.Float("beta", 1).value_or(1);
  for (double& element : *bias) element *= beta;
  return bias;
}

ValueId AddBias(Graph& graph, const Node& of, const std::vector<double>& bias) {
  const TensorType type{graph.value(of.outputs[0]).type.dtype, {static_cast<int64_t>(bias.size())}};
  return AddConstant(graph, absl::StrCat(of.name, ".bias"), type, bias);
}

// Folds an affine node into the product with a bias that computes its input.
bool FoldIntoBiased(Graph& graph, int n, int producer, const Affine& affine, int64_t axis) {
  auto bias = BiasOf(graph, graph.nodes[producer], axis);
  if (!bias) return false;
  for (size_t c = 0; c < bias->size(); ++c) {
    (*bias)[c] = (*bias)[c] * affine.scale[c] + affine.shift[c];
  }
  if (!FoldedFits(graph, graph.nodes[producer], affine.scale, *bias)) return false;
  if (!ReplaceBy(graph, n, affine.input)) return false;
  const ValueId weights = ScaledWeights(graph, graph.nodes[producer], affine.scale);
  Node& product = graph.nodes[producer];
  product.inputs[1] = weights;
  if (product.inputs.size() < 3 && IsAll(*bias, 0)) return true;
  product.inputs.resize(3);
  product.inputs[2] = AddBias(graph, product, *bias);
  if (product.op == "Gemm") product.attributes["beta"] = 1.0;
  return true;
}

// Folds an affine node into a MatMul that computes its input, or into a MatMul and the Add of a
// bias between them. The affine node becomes the Add of a bias.
bool FoldIntoMatMul(Graph& graph, int n, int producer, Affine affine, int64_t axis) {
  int product = producer;
  ValueId result = affine.input;
  if (graph.nodes[producer].op != "MatMul") {
    const auto bias = AffineOf(graph, graph.nodes[producer], axis);
    product = PrivateProducer(graph, bias->input);
    result = bias->input;
    for (size_t c = 0; c < affine.shift.size(); ++c) {
      affine.shift[c] += bias->shift[c] * affine.scale[c];
    }
  }
  if (!FoldedFits(graph, graph.nodes[product], affine.scale, affine.shift)) return false;
  if (product != producer) MarkRemoved(graph.nodes[producer]);
  const ValueId weights = ScaledWeights(graph, graph.nodes[product], affine.scale);
  graph.nodes[product].inputs[1] = weights;
  Node& node = graph.nodes[n];
  node.inputs = {result, AddBias(graph, node, affine.shift)};
  node.op = "Add";
  node.attributes.clear();
  return true;
}

// Returns `producer` if it is a product, or the MatMul to whose result it adds a bias; -1 if it is
// neither.
int FindProduct(const Graph& graph, int producer) {
  if (producer < 0) return -1;
  if (HasWeights(graph, graph.nodes[producer])) return producer;
  const Node& sum = graph.nodes[producer];
  if (sum.op != "Add" && sum.op != "Sub") return -1;
  const int product = PrivateProducer(graph, sum.inputs[graph.IsConstant(sum.inputs[0]) ? 1 : 0]);
  if (product < 0 || graph.nodes[product].op != "MatMul") return -1;
  if (!HasWeights(graph, graph.nodes[product])) return -1;
  const auto bias = AffineOf(graph, sum, ChannelAxis(graph, graph.nodes[product]));
  return bias && IsAll(bias->scale, 1) ? product : -1;
}

bool FoldNode(Graph& graph, int n) {
  const Node& node = graph.nodes[n];
  if (node.inputs.empty() || node.inputs[0] == kNoValue) return false;
  const ValueId input = node.inputs[graph.IsConstant(node.inputs[0]) ? 1 % node.inputs.size() : 0];
  const int producer = PrivateProducer(graph, input);
  const int product = FindProduct(graph, producer);
  if (product < 0) return false;
  const int64_t axis = ChannelAxis(graph, graph.nodes[product]);
  const auto affine = AffineOf(graph, node, axis);
  if (!affine || affine->input != input) return false;
  if (graph.nodes[product].op != "MatMul") {
    return FoldIntoBiased(graph, n, producer, *affine, axis);
  }
  if (producer == product && IsAll(affine->scale, 1)) return false;  // already a bias
  return FoldIntoMatMul(graph, n, producer, *affine, axis);
}

}  // namespace

absl::StatusOr<bool> FoldBatchNorm(Graph& graph) {
  bool changed = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) changed |= FoldNode(graph, static_cast<int>(n));
  EraseRemoved(graph);
  return changed;
}

}  // namespace hone::graph
