#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "client/network/graph/graph.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/op/convolution.h"
#include "client/network/graph/op/quantized.h"
#include "client/network/graph/operator_def.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"
#include "common/base/status_macros.h"

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

namespace {

// A convolution of bytes whose image is padded by another node.
struct PaddedImage {
  Node convolution;            // without padding; its first input is the padded image
  ValueId weights = kNoValue;  // bytes; the last dimension may have more taps, which are zero
};

constexpr int64_t kMaxChannels = 4;
constexpr int64_t kTapsTogether = 4;

// Returns the node that quantizes an input of the graph for this convolution alone, or -1. Its zero
// point is that of the DequantizeLinear, because padding must stand for zero.
int QuantizerOf(const Graph& graph, const Node& convolution, ValueId bytes) {
  const int dequantize = PrivateProducer(graph, convolution.inputs[0]);
  const int quantize = dequantize < 0 ? -1 : PrivateProducer(graph, bytes);
  if (quantize < 0 || graph.nodes[quantize].op != "QuantizeLinear") return -1;
  const Node& node = graph.nodes[quantize];
  if (std::ranges::count(graph.inputs, node.inputs[0]) == 0) return -1;
  const NodeView from(graph, node), to(graph, graph.nodes[dequantize]);
  return from.Type(1).elements() == 1 && HaveSameZeroPoint(from, to) ? quantize : -1;
}

// Appends a node with one result.
absl::StatusOr<ValueId> Append(Graph& graph, Node node, const std::string& name) {
  node.name = FreshName(graph, name);
  node.outputs.clear();
  HONE_RETURN_IF_ERROR(graph.AddNode(node, {node.name}));
  return graph.nodes.back().outputs[0];
}

// Appends a Pad of an image by the padding of a convolution and, at the end of the last dimension,
// by `more`. `value`: of the padding; kNoValue: 0. Removes the padding from the convolution.
absl::StatusOr<ValueId> AppendPad(Graph& graph, Node& convolution, ValueId image,
                                  const Convolution& c, int64_t more, ValueId value) {
  std::vector<int64_t> begins = {0, 0}, ends = {0, 0};
  for (const Window& window : c.windows) {
    begins.push_back(window.begin);
    ends.push_back(window.end);
  }
  ends.back() += more;
  begins.insert(begins.end(), ends.begin(), ends.end());
  Node pad{.op = "Pad",
           .inputs = {image, AddInts(graph, absl::StrCat(convolution.name, ".pads"), begins)}};
  if (value != kNoValue) pad.inputs.push_back(value);
  for (const char* attribute : {"auto_pad", "kernel_shape", "pads"}) {
    convolution.attributes.erase(attribute);
  }
  return Append(graph, pad, absl::StrCat(convolution.name, ".Pad"));
}

bool IsPadded(const Convolution& c) {
  return std::ranges::any_of(c.windows, [](const Window& w) { return w.begin > 0 || w.end > 0; });
}

// Whether reading a shift for each position takes longer than copying the image and multiplying its
// padding. On Zen 5, a byte of the shifts took as long as 64 products.
bool PaysToPad(const Graph& graph, const Convolution& c, ValueId bytes) {
  constexpr double kBytesOfShift = 4, kProducts = 64, kBytesOfImage = 2;
  double positions = 1, inside = 1, all = 1;
  for (const Window& window : c.windows) {
    int64_t taps = 0;
    for (int64_t o = 0; o < window.outputs; ++o) {
      for (int64_t t = 0; t < window.kernel; ++t) taps += window.IsInside(o, t);
    }
    positions *= static_cast<double>(window.outputs);
    inside *= static_cast<double>(taps);
    all *= static_cast<double>(window.outputs * window.kernel);
  }
  const auto samples = static_cast<double>(c.shape[0]);
  const auto channels = static_cast<double>(c.groups * c.group_outputs);
  const double products = (all - inside) * samples * channels * static_cast<double>(c.group_inputs);
  const auto image = static_cast<double>(graph.value(bytes).type.bytes());
  return kBytesOfShift * samples * positions * channels >
         image / kBytesOfImage + products / kProducts;
}

// Appends taps to the last dimension of kernels, which are zero.
ValueId WithTaps(Graph& graph, ValueId weights, int64_t more) {
  TensorType type = graph.value(weights).type;
  const std::vector<double> old = Reals(graph, weights);
  const auto taps = static_cast<size_t>(type.shape.back());
  type.shape.back() += more;
  std::vector<double> elements;
  for (size_t i = 0; i < old.size(); ++i) {
    elements.push_back(old[i]);
    if (i % taps == taps - 1) elements.insert(elements.end(), more, 0);
  }
  return AddConstant(graph, absl::StrCat(graph.value(weights).name, ".taps"), type, elements);
}

// Whether an input of the graph, an image with few channels, is quantized for a convolution alone.
// Then adds nodes that pad the image with zeros and quantize it, and returns the convolution of the
// result; otherwise returns nullopt. The convolution then needs no condition for its taps, and what
// a zero point adds to its sums does not depend on the position. Instructions for dot products
// read four taps of a row together, so the kernels get a multiple of four.
// `convolution`: a Conv of an image that a DequantizeLinear computes from `bytes`. `weights`: the
// constant bytes of its kernels, without a zero point.
absl::StatusOr<std::optional<PaddedImage>> PadInput(Graph& graph, const Node& convolution,
                                                    ValueId bytes, ValueId weights) {
  const int quantize = QuantizerOf(graph, convolution, bytes);
  if (quantize < 0) return std::nullopt;
  HONE_ASSIGN_OR_RETURN(const Convolution c, Convolution::Of(NodeView(graph, convolution), 0, 1));
  if (c.channels_last || c.groups != 1 || c.group_inputs > kMaxChannels) return std::nullopt;
  PaddedImage padded{convolution, weights};
  const Window& last = c.windows.back();
  const int64_t rest = last.kernel % kTapsTogether;
  int64_t more = 0;
  if (rest != 0 && c.group_inputs != kMaxChannels && last.kernel > 1 && last.dilation == 1) {
    more = kTapsTogether - rest;
    padded.weights = WithTaps(graph, weights, more);
  }
  if (!IsPadded(c) && more == 0) return std::nullopt;
  Node quantizer = graph.nodes[quantize];
  HONE_ASSIGN_OR_RETURN(quantizer.inputs[0], AppendPad(graph, padded.convolution,
                                                       quantizer.inputs[0], c, more, kNoValue));
  HONE_ASSIGN_OR_RETURN(
      padded.convolution.inputs[0],
      Append(graph, quantizer, absl::StrCat(convolution.name, ".QuantizeLinear")));
  return padded;
}

// As above for any image, which is padded with the constant `zero_point` after it was quantized.
// Returns nullopt if there is no padding, or if it takes less time to read what the zero point adds
// to the sums at each position than to compute sums with the padding.
absl::StatusOr<std::optional<PaddedImage>> PadBytes(Graph& graph, const Node& convolution,
                                                    ValueId bytes, ValueId weights,
                                                    ValueId zero_point) {
  HONE_ASSIGN_OR_RETURN(const Convolution c, Convolution::Of(NodeView(graph, convolution), 0, 1));
  if (c.channels_last || !IsPadded(c) || !PaysToPad(graph, c, bytes)) return std::nullopt;
  PaddedImage padded{convolution, weights};
  HONE_ASSIGN_OR_RETURN(padded.convolution.inputs[0],
                        AppendPad(graph, padded.convolution, bytes, c, 0, zero_point));
  return padded;
}

// What a zero point of the image adds to the sums of products of a convolution: the zero point
// times the sum of the weights. Padding is left out of the sums, so this depends on the position
// along the dimensions that are padded.
struct ZeroPointShift {
  std::vector<int64_t> shape;  // [channels, 1, width], for example, if only the width is padded
  std::vector<double> elements;
};

bool ReadsPadding(const Window& window) {
  return !window.IsInside(0, 0) || !window.IsInside(window.outputs - 1, window.kernel - 1);
}

// `convolution`: a Conv with channels first. `weights`: the elements of its kernels, as integers.
// InvalidArgument: the node is not a legal convolution.
absl::StatusOr<ZeroPointShift> ShiftOf(const NodeView& convolution,
                                       const std::vector<double>& weights, double zero_point) {
  HONE_ASSIGN_OR_RETURN(const Convolution c, Convolution::Of(convolution, 0, 1));
  int64_t taps = 1;
  for (const Window& window : c.windows) taps *= window.kernel;
  const int64_t channels = c.groups * c.group_outputs;
  ZeroPointShift shift{.shape = {channels}};
  // The sums over the input channels: [channels, taps…].
  shift.elements.assign(channels * taps, 0);
  for (size_t i = 0; i < weights.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    shift.elements[index / (taps * c.group_inputs) * taps + index % taps] +=
        zero_point * weights[i];
  }
  // Replaces the taps of one dimension after the other by positions.
  int64_t outer = channels, inner = taps;
  for (const Window& window : c.windows) {
    const int64_t positions = ReadsPadding(window) ? window.outputs : 1;
    inner /= window.kernel;
    std::vector<double> sums(outer * positions * inner, 0);
    for (int64_t o = 0; o < outer; ++o) {
      for (int64_t p = 0; p < positions; ++p) {
        for (int64_t tap = 0; tap < window.kernel; ++tap) {
          if (!window.IsInside(p, tap)) continue;
          for (int64_t i = 0; i < inner; ++i) {
            sums[(o * positions + p) * inner + i] +=
                shift.elements[(o * window.kernel + tap) * inner + i];
          }
        }
      }
    }
    shift.elements = std::move(sums);
    shift.shape.push_back(positions);
    outer *= positions;
  }
  return shift;
}

// A tensor of bytes that a DequantizeLinear converts, with constant parameters.
struct Dequantized {
  ValueId bytes = kNoValue, zero_point = kNoValue;
  std::vector<double> scale;  // one, or one per channel
  int64_t axis = 0;           // the axis of the channels
};

std::optional<Dequantized> DequantizedOf(const Graph& graph, const std::vector<int>& producers,
                                         ValueId id) {
  if (id == kNoValue || producers[id] < 0) return std::nullopt;
  const Node& node = graph.nodes[producers[id]];
  if (node.op != "DequantizeLinear") return std::nullopt;
  const NodeView view(graph, node);
  if (!IsByte(view.Type(0).dtype) || view.Type(1).dtype != ir::DType::kF32) return std::nullopt;
  if (view.Int("block_size", 0).value_or(1) != 0) return std::nullopt;
  if (!view.IsConstant(1) || (view.Has(2) && !view.IsConstant(2))) return std::nullopt;
  Dequantized operand{.bytes = node.inputs[0], .scale = Reals(graph, node.inputs[1])};
  if (view.Has(2) && !IsZero(view, 2)) operand.zero_point = node.inputs[2];
  if (operand.scale.size() > 1) {
    const auto axis = view.AxisAttribute("axis", 1, view.Rank(0));
    if (!axis.ok()) return std::nullopt;
    operand.axis = *axis;
  }
  return operand;
}

// A Conv, MatMul or Gemm whose operands are dequantized.
struct Product {
  Dequantized x, w;
  int64_t channels = 0;  // of the result
  bool is_convolution = false;
  bool transposes_w = false;
  double alpha = 1, beta = 1;

  // The factors of the sums, one or one per channel.
  std::vector<double> Scale() const {
    std::vector<double> scale = w.scale;
    for (double& element : scale) element *= x.scale[0] * alpha;
    return scale;
  }
};

// Whether sums of this many products fit i32, which would wrap around. The sums before zero points
// are subtracted must fit, too.
bool FitsSum(const Graph& graph, const Product& product, int64_t terms) {
  const auto largest = [&](const Dequantized& operand) {
    const bool is_signed = graph.value(operand.bytes).type.dtype == ir::DType::kI8;
    return is_signed ? 128.0 : 255.0;
  };
  return 4.0 * static_cast<double>(terms) * largest(product.x) * largest(product.w) < 0x1p31;
}

std::optional<Product> ProductOf(const Graph& graph, const std::vector<int>& producers,
                                 const Node& node) {
  Product product{.is_convolution = node.op == "Conv"};
  if (!product.is_convolution && node.op != "MatMul" && node.op != "Gemm") return std::nullopt;
  const auto x = DequantizedOf(graph, producers, node.inputs[0]);
  const auto w = DequantizedOf(graph, producers, node.inputs[1]);
  if (!x || !w || x->scale.size() > 1) return std::nullopt;
  product.x = *x;
  product.w = *w;
  if (node.op == "Gemm") {
    const NodeView view(graph, node);
    if (view.Int("transA", 0).value_or(1) != 0) return std::nullopt;
    product.transposes_w = view.Int("transB", 0).value_or(0) != 0;
    product.alpha = view.Float("alpha", 1).value_or(1);
    product.beta = view.Float("beta", 1).value_or(1);
  }
  const std::vector<int64_t>& shape = graph.value(w->bytes).type.shape;
  if (shape.size() < 2) return std::nullopt;
  const bool channels_first = product.is_convolution || product.transposes_w;
  const size_t channel_axis = channels_first ? 0 : shape.size() - 1;
  product.channels = shape[channel_axis];
  int64_t terms = shape[channels_first ? 1 : shape.size() - 2];
  for (size_t d = 2; product.is_convolution && d < shape.size(); ++d) terms *= shape[d];
  if (w->scale.size() > 1) {
    if (w->axis != static_cast<int64_t>(channel_axis)) return std::nullopt;
    if (!product.is_convolution && shape.size() != 2) return std::nullopt;
  }
  if (!FitsSum(graph, product, terms)) return std::nullopt;
  // Infinity times a sum of 0 would be NaN.
  const bool finite = std::ranges::all_of(
      product.Scale(), [](double scale) { return std::isfinite(static_cast<float>(scale)); });
  return finite ? std::optional(product) : std::nullopt;
}

// Appends the nodes that compute a product of integers to a graph.
class ProductWriter {
 public:
  ProductWriter(Graph& graph, const Node& node, const Product& product)
      : graph_(graph), node_(node), product_(product) {}

  // Returns the value that equals the result of the node.
  absl::StatusOr<ValueId> Write() {
    const std::vector<double> integer_bias = IntegerBias();
    HONE_ASSIGN_OR_RETURN(ValueId result, WriteSum(integer_bias));
    HONE_ASSIGN_OR_RETURN(result, Add("Cast", {result}, {{"to", kFloat}}));
    HONE_ASSIGN_OR_RETURN(result, Add("Mul", {result, Constant(".scale", product_.Scale())}));
    if (!NodeView(graph_, node_).Has(2) || !integer_bias.empty()) return result;
    ValueId bias = node_.inputs[2];
    if (product_.is_convolution) {
      const ValueId shape = AddInts(graph_, absl::StrCat(node_.name, ".shape"), ChannelShape());
      HONE_ASSIGN_OR_RETURN(bias, Add("Reshape", {bias, shape}));
    } else if (product_.beta != 1) {
      HONE_ASSIGN_OR_RETURN(bias, Add("Mul", {bias, Constant(".beta", {product_.beta})}));
    }
    return Add("Add", {result, bias});
  }

 private:
  static constexpr int64_t kFloat = 1;         // ONNX's number of f32
  static constexpr double kScaleError = 1e-6;  // relative, of products that are rounded to f32

  // The integers of a bias that has the scale of the sums, one per channel. Adding them to the sums
  // needs no rounding. Empty if there is no such bias.
  std::vector<double> IntegerBias() const {
    const NodeView view(graph_, node_);
    if (!view.Has(2) || product_.beta != 1) return {};
    const int producer = graph_.Producers()[node_.inputs[2]];
    if (producer < 0 || graph_.nodes[producer].op != "DequantizeLinear") return {};
    const NodeView dequantize(graph_, graph_.nodes[producer]);
    const TensorType& type = dequantize.Type(0);
    if (type.dtype != ir::DType::kI32 || !dequantize.IsConstant(0) || !dequantize.IsConstant(1) ||
        !IsZero(dequantize, 2) || type.elements() != product_.channels ||
        type.shape.back() != product_.channels) {
      return {};
    }
    const std::vector<double> own = Reals(graph_, dequantize.node().inputs[1]);
    const std::vector<double> sums = product_.Scale();
    std::vector<double> bias = Reals(graph_, dequantize.node().inputs[0]);
    if (own.size() != 1 && own.size() != bias.size()) return {};  // a scale per block
    for (size_t i = 0; i < bias.size(); ++i) {
      const double wanted = sums[sums.size() == 1 ? 0 : i];
      const double error = std::abs(own[own.size() == 1 ? 0 : i] - wanted);
      // FitsSum() leaves room for as much.
      if (error > kScaleError * std::abs(wanted) || std::abs(bias[i]) >= 0x1p29) return {};
    }
    return bias;
  }
  // `bias`: one integer per channel, or none.
  absl::StatusOr<ValueId> WriteSum(const std::vector<double>& bias) {
    Node node = node_;  // as it reads bytes
    node.inputs.resize(2);
    node.inputs[0] = product_.x.bytes;
    ValueId weights = product_.w.bytes;
    const bool plain = product_.w.zero_point == kNoValue && graph_.IsConstant(weights);
    if (product_.is_convolution && plain) {
      HONE_ASSIGN_OR_RETURN(auto padded, PadInput(graph_, node_, product_.x.bytes, weights));
      if (!padded.has_value() && product_.x.zero_point != kNoValue) {
        HONE_ASSIGN_OR_RETURN(
            padded, PadBytes(graph_, node_, product_.x.bytes, weights, product_.x.zero_point));
      }
      if (padded.has_value()) {
        node = padded->convolution;
        weights = padded->weights;
      }
    } else if (product_.transposes_w && graph_.IsConstant(weights)) {
      weights = AddPermuted(graph_, weights, graph_.value(weights).type.shape, {1, 0});
    } else if (product_.transposes_w) {
      HONE_ASSIGN_OR_RETURN(weights, Add("Transpose", {weights}));
    }
    node.inputs[1] = weights;
    const bool known = product_.x.zero_point != kNoValue && plain &&
                       (product_.is_convolution || graph_.value(weights).type.shape.size() == 2);
    node.inputs.resize(2);
    node.inputs.insert(node.inputs.end(),
                       {known ? kNoValue : product_.x.zero_point, product_.w.zero_point});
    while (node.inputs.back() == kNoValue) node.inputs.pop_back();
    if (!product_.is_convolution) node.attributes.clear();
    HONE_ASSIGN_OR_RETURN(const ValueId sum,
                          Add(product_.is_convolution ? "ConvInteger" : "MatMulInteger",
                              node.inputs, node.attributes));
    if (!known && bias.empty()) return sum;
    ZeroPointShift added{ChannelShape(), std::vector<double>(product_.channels, 0)};
    if (known) {
      HONE_ASSIGN_OR_RETURN(added, ShiftOfSums(node));
      for (double& element : added.elements) element = -element;
    }
    const size_t positions = added.elements.size() / static_cast<size_t>(product_.channels);
    for (size_t i = 0; i < added.elements.size() && !bias.empty(); ++i) {
      added.elements[i] += bias[i / positions];
    }
    return Add("Add", {sum, AddConstant(graph_, absl::StrCat(node_.name, ".bias"),
                                        {ir::DType::kI32, added.shape}, added.elements)});
  }
  // `node`: the product of bytes.
  absl::StatusOr<ZeroPointShift> ShiftOfSums(const Node& node) const {
    const std::vector<double> weights = Reals(graph_, node.inputs[1]);
    const double zero_point = Reals(graph_, product_.x.zero_point)[0];
    if (product_.is_convolution) return ShiftOf(NodeView(graph_, node), weights, zero_point);
    ZeroPointShift shift{ChannelShape(), std::vector<double>(product_.channels, 0)};
    for (size_t i = 0; i < weights.size(); ++i) {
      shift.elements[i % shift.elements.size()] += zero_point * weights[i];
    }
    return shift;
  }
  absl::StatusOr<ValueId> Add(const std::string& op, const std::vector<ValueId>& inputs,
                              const std::map<std::string, Attribute>& attributes = {}) {
    const std::string name = absl::StrCat(node_.name, ".", op);
    HONE_RETURN_IF_ERROR(
        graph_.AddNode({name, op, inputs, {}, attributes}, {FreshName(graph_, name)}));
    return graph_.nodes.back().outputs[0];
  }
  // A constant with one element, or with one per channel.
  ValueId Constant(const std::string& name, const std::vector<double>& elements) {
    const std::vector<int64_t> shape =
        elements.size() > 1 ? ChannelShape() : std::vector<int64_t>{};
    return AddConstant(graph_, absl::StrCat(node_.name, name), {ir::DType::kF32, shape}, elements);
  }
  // The shape of a tensor per channel that broadcasts to the result: [channels, 1, 1] for images.
  std::vector<int64_t> ChannelShape() const {
    std::vector<int64_t> shape = {product_.channels};
    const size_t rank = graph_.value(node_.outputs[0]).type.shape.size();
    if (product_.is_convolution) shape.resize(rank - 1, 1);
    return shape;
  }

  Graph& graph_;
  const Node node_;
  const Product product_;
};

}  // namespace

absl::StatusOr<bool> UseIntegerProducts(Graph& graph) {
  bool changed = false;
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const auto product = ProductOf(graph, graph.Producers(), graph.nodes[n]);
    if (!product) continue;
    const auto first = static_cast<ptrdiff_t>(graph.nodes.size());
    HONE_RETURN_IF_ERROR(ProductWriter(graph, graph.nodes[n], *product).Write().status());
    // The new nodes stand where the product was, and the last one computes its result.
    graph.nodes.back().outputs = graph.nodes[n].outputs;
    MarkRemoved(graph.nodes[n]);
    std::rotate(graph.nodes.begin() + static_cast<ptrdiff_t>(n), graph.nodes.begin() + first,
                graph.nodes.end());
    changed = true;
  }
  EraseRemoved(graph);
  return changed;
}

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
