#include "tests/client/network/graph/random_graph.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "client/network/graph/node_view.h"

namespace hone::graph {
namespace {

using Ints64 = std::vector<int64_t>;

}  // namespace

Graph RandomGraph::Draw(int patterns) {
  graph_ = {};
  graph_.name = "random";
  Shape shape = {1 + Below(2), 1 + Below(4), 2 + Below(3), 2 + Below(3)};
  if (Below(3) == 0) shape.pop_back();
  if (Below(3) == 0) shape[0] = 1;
  for (int64_t i = 1 + Below(2); i > 0; --i) {
    graph_.inputs.push_back(
        graph_.AddValue(absl::StrCat("x", graph_.values.size()), {dtype_, shape}));
  }
  for (int i = 0; i < patterns; ++i) AddPattern();
  const std::vector<std::vector<int>> readers = graph_.Consumers();
  for (const Node& node : graph_.nodes) {
    for (const ValueId id : node.outputs) {
      if (readers[id].empty() || Below(12) == 0) graph_.outputs.push_back(id);
    }
  }
  return graph_;
}

std::vector<ir::Scalars> RandomGraph::DrawInputs(const Graph& graph) {
  std::vector<ir::Scalars> inputs;
  for (const ValueId id : graph.inputs) {
    ir::Scalars elements(graph.value(id).type.elements());
    for (ir::Scalar& element : elements) element = DrawElement();
    inputs.push_back(std::move(elements));
  }
  return inputs;
}

ValueId RandomGraph::AddConstant(const TensorType& type, const ir::Scalars& elements) {
  return graph_.AddConstant(absl::StrCat("c", graph_.values.size()), type,
                            ConstantData(Encode(type, elements)));
}

ValueId RandomGraph::Constant(const Shape& shape) {
  const TensorType type{dtype_, shape};
  ir::Scalars elements(type.elements());
  for (ir::Scalar& element : elements) element = DrawElement();
  return AddConstant(type, elements);
}

ValueId RandomGraph::Positive(const Shape& shape) {
  const TensorType type{dtype_, shape};
  ir::Scalars elements(type.elements());
  for (ir::Scalar& element : elements) element = std::abs(DrawElement()) + 0.5;
  return AddConstant(type, elements);
}

ValueId RandomGraph::Ints(const std::vector<int64_t>& values) {
  return AddConstant({ir::DType::kI64, {static_cast<int64_t>(values.size())}},
                     ir::Scalars(values.begin(), values.end()));
}

ValueId RandomGraph::Apply(const std::string& op, const std::vector<ValueId>& inputs,
                           const Attributes& attributes) {
  if (std::count(inputs.begin(), inputs.end(), kNoValue) > 0) return kNoValue;
  const std::string name = absl::StrCat(op, graph_.nodes.size());
  const std::string output = absl::StrCat("v", graph_.values.size());
  if (!graph_.AddNode({name, op, inputs, {}, attributes}, {output}).ok()) return kNoValue;
  return graph_.nodes.back().outputs[0];
}

ValueId RandomGraph::DrawValue() {
  // Mostly a recent one, so that there are long paths.
  std::vector<ValueId> values;
  for (ValueId id = 0; static_cast<size_t>(id) < graph_.values.size(); ++id) {
    if (!graph_.IsConstant(id) && graph_.value(id).type.dtype == dtype_) values.push_back(id);
  }
  const int64_t count = static_cast<int64_t>(values.size());
  return values[Below(2) == 0 ? count - 1 : Below(count)];
}

ValueId RandomGraph::DrawOperand(ValueId x) {
  Shape shape = ShapeOf(x);
  switch (Below(5)) {
    case 0:
      return Constant({});
    case 1: {
      for (int64_t& extent : shape) extent = Below(2) == 0 ? 1 : extent;
      return Constant(shape);
    }
    case 2: {
      shape.erase(shape.begin(), shape.begin() + Below(static_cast<int64_t>(shape.size()) + 1));
      return Constant(shape);
    }
    default: {
      for (int attempt = 0; attempt < 8; ++attempt) {
        const ValueId id = DrawValue();
        if (ShapeOf(id) == shape) return id;
      }
      return x;
    }
  }
}

void RandomGraph::AddPattern() {
  using Pattern = ValueId (RandomGraph::*)(ValueId);
  static constexpr Pattern kPatterns[] = {
      &RandomGraph::Unary,     &RandomGraph::Unary,       &RandomGraph::Binary,
      &RandomGraph::Binary,    &RandomGraph::Product,     &RandomGraph::Convolution,
      &RandomGraph::BatchNorm, &RandomGraph::PerChannel,  &RandomGraph::Padded,
      &RandomGraph::Pool,      &RandomGraph::Reshaped,    &RandomGraph::Transposed,
      &RandomGraph::Cut,       &RandomGraph::Joined,      &RandomGraph::Gathered,
      &RandomGraph::Reduced,   &RandomGraph::LayerNorm,   &RandomGraph::SpelledSoftmax,
      &RandomGraph::Gelu,      &RandomGraph::Swish,       &RandomGraph::Attention,
      &RandomGraph::Unchanged, &RandomGraph::OfConstants, &RandomGraph::Again,
      &RandomGraph::Padded,    &RandomGraph::Quantized,   &RandomGraph::Quantized,
      &RandomGraph::Shuffled,
  };
  (this->*kPatterns[Below(std::size(kPatterns))])(DrawValue());
}

ValueId RandomGraph::Unary(ValueId x) {
  static constexpr const char* kOperators[] = {"Relu", "Abs", "Sigmoid", "Tanh", "Neg", "Erf"};
  return Apply(kOperators[Below(std::size(kOperators))], {x});
}

ValueId RandomGraph::Binary(ValueId x) {
  static constexpr const char* kOperators[] = {"Add", "Sub", "Mul"};
  const ValueId y = DrawOperand(x);
  if (Below(6) == 0) {
    return Apply("Div", {x, Apply("Add", {Apply("Abs", {y}), Positive({})})});
  }
  const bool swap = Below(2) == 0;
  return Apply(kOperators[Below(std::size(kOperators))], {swap ? y : x, swap ? x : y});
}

ValueId RandomGraph::Product(ValueId x) {
  if (Rank(x) < 2) return kNoValue;
  const ValueId product = Apply("MatMul", {x, Constant({ShapeOf(x).back(), 1 + Below(5)})});
  if (product == kNoValue || Below(2) == 0) return product;
  return Apply("Add", {product, Constant({ShapeOf(product).back()})});
}

ValueId RandomGraph::Convolution(ValueId x) {
  if (Rank(x) < 3) return kNoValue;
  const int64_t channels = ShapeOf(x)[1], group = Below(3) == 0 ? channels : 1;
  const bool transposed = Below(5) == 0;
  const int64_t kernel = 1 + Below(3), out = group * (1 + Below(3));
  Shape weights = {transposed ? channels : out, (transposed ? out : channels) / group};
  Ints64 pads, strides;
  for (int64_t d = 2; d < Rank(x); ++d) {
    weights.push_back(kernel);
    strides.push_back(1 + Below(2));
  }
  for (int64_t d = 0; d < 2 * (Rank(x) - 2); ++d) pads.push_back(kernel / 2);
  std::vector<ValueId> inputs = {x, Constant(weights)};
  if (Below(2) == 0) inputs.push_back(Constant({out}));
  const ValueId y = Apply(transposed ? "ConvTranspose" : "Conv", inputs,
                          {{"group", group}, {"pads", pads}, {"strides", strides}});
  if (y == kNoValue) return y;
  switch (Below(4)) {
    case 0:
      return BatchNorm(y);
    case 1:
      return PerChannel(y);
    case 2:
      return Swish(y);
    default:
      return Unary(y);
  }
}

// A channel shuffle between convolutions.
ValueId RandomGraph::Shuffled(ValueId x) {
  if (Rank(x) < 3) return kNoValue;
  constexpr int64_t kChannels = 6;
  Shape weights(Rank(x), 1);
  weights[0] = kChannels;
  weights[1] = ShapeOf(x)[1];
  x = Apply("Conv", {x, Constant(weights)});
  if (x == kNoValue) return x;
  const Shape shape = ShapeOf(x);
  const int64_t groups = 2 + Below(2);
  Ints64 parts = {shape[0], groups, kChannels / groups}, order = {0, 2, 1};
  for (size_t d = 2; d < shape.size(); ++d) {
    parts.push_back(shape[d]);
    order.push_back(static_cast<int64_t>(d) + 1);
  }
  ValueId y = Apply("Reshape", {x, Ints(parts)});
  y = Apply("Transpose", {y}, {{"perm", order}});
  y = Apply("Reshape", {y, Ints(shape)});
  if (Below(2) == 0) {
    weights[1] = 1;
    y = Apply("Conv", {y, Constant(weights), Constant({kChannels})}, {{"group", kChannels}});
    y = Apply("Relu", {y});
  }
  const int64_t in_groups = 1 + Below(3);
  weights[1] = kChannels / in_groups;
  return Apply("Conv", {y, Constant(weights)}, {{"group", in_groups}});
}

ValueId RandomGraph::BatchNorm(ValueId x) {
  if (Rank(x) < 2) return kNoValue;
  const Shape channels = {ShapeOf(x)[1]};
  return Apply("BatchNormalization",
               {x, Constant(channels), Constant(channels), Constant(channels), Positive(channels)},
               {{"epsilon", 1e-3}});
}

ValueId RandomGraph::PerChannel(ValueId x) {
  if (Rank(x) < 2) return kNoValue;
  Shape shape(Rank(x) - 1, 1);
  shape[0] = ShapeOf(x)[1];
  const ValueId y = Apply("Mul", {x, Constant(shape)});
  return Below(2) == 0 ? Apply("Add", {Constant(shape), y}) : Apply("Sub", {y, Constant(shape)});
}

ValueId RandomGraph::Padded(ValueId x) {
  if (Rank(x) < 3) return kNoValue;
  Ints64 pads(2 * Rank(x), 0);
  for (int64_t d = 2; d < Rank(x); ++d) {
    pads[d] = Below(2);
    pads[Rank(x) + d] = Below(2);
  }
  const bool lowest = Below(4) == 0;
  std::vector<ValueId> inputs = {x, Ints(pads)};
  if (lowest) inputs.push_back(AddConstant({dtype_, {}}, {-INFINITY}));
  const ValueId padded = Apply("Pad", inputs, {{"mode", std::string("constant")}});
  if (padded == kNoValue) return padded;
  if (lowest) {
    return Apply("MaxPool", {padded}, {{"kernel_shape", Ints64(Rank(x) - 2, 2)}});
  }
  return Below(3) == 0 ? Pool(padded) : Convolution(padded);
}

ValueId RandomGraph::Pool(ValueId x) {
  if (Rank(x) < 3) return kNoValue;
  if (Below(4) == 0) return Apply("GlobalAveragePool", {x});
  const Ints64 kernel(Rank(x) - 2, 2), strides(Rank(x) - 2, 1 + Below(2));
  const Ints64 pads(2 * (Rank(x) - 2), Below(2));
  Attributes attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"pads", pads}};
  if (Below(2) == 0) return Apply("MaxPool", {x}, attributes);
  attributes["count_include_pad"] = Below(2);
  return Apply("AveragePool", {x}, attributes);
}

ValueId RandomGraph::Reshaped(ValueId x) {
  Shape shape = ShapeOf(x);
  if (Below(2) == 0) {
    shape = {shape.empty() ? 1 : shape[0], -1};
  } else {
    shape.insert(shape.begin() + Below(Rank(x) + 1), 1);
  }
  if (shape.size() > 5) return kNoValue;
  const ValueId y = Apply("Reshape", {x, Ints(shape)});
  if (Below(2) == 0) return Apply("Reshape", {y, Ints(ShapeOf(x))});
  return y;
}

ValueId RandomGraph::Transposed(ValueId x) {
  Ints64 permutation(Rank(x));
  std::iota(permutation.begin(), permutation.end(), 0);
  for (int64_t d = Rank(x) - 1; d > 0; --d) std::swap(permutation[d], permutation[Below(d + 1)]);
  const ValueId y = Apply("Transpose", {x}, {{"perm", permutation}});
  if (y == kNoValue || Below(2) == 0) return y;
  return Below(2) == 0 ? Apply("Transpose", {y}) : Product(y);
}

ValueId RandomGraph::Cut(ValueId x) {
  if (Rank(x) == 0) return kNoValue;
  const int64_t axis = Below(Rank(x)), extent = ShapeOf(x)[axis], begin = Below(extent);
  const ValueId y =
      Apply("Slice", {x, Ints({begin}), Ints({begin + 1 + Below(extent - begin)}), Ints({axis})});
  return Below(2) == 0 ? y : y == kNoValue ? y : Unary(y);
}

ValueId RandomGraph::Joined(ValueId x) {
  if (Rank(x) == 0 || graph_.value(x).type.elements() > 512) return kNoValue;
  std::vector<ValueId> parts = {x, DrawValue()};
  if (Below(2) == 0) parts[1] = Unary(x);
  if (Below(3) == 0) parts.push_back(Unary(x));
  return Apply("Concat", parts, {{"axis", Below(Rank(x))}});
}

ValueId RandomGraph::Gathered(ValueId x) {
  if (Rank(x) == 0) return kNoValue;
  const int64_t axis = Below(Rank(x)), extent = ShapeOf(x)[axis];
  return Apply("Gather", {x, Ints({Below(extent), Below(extent)})}, {{"axis", axis}});
}

ValueId RandomGraph::Reduced(ValueId x) {
  if (Rank(x) == 0) return kNoValue;
  static constexpr const char* kOperators[] = {"ReduceMean", "ReduceMax", "ReduceSum"};
  return Apply(kOperators[Below(std::size(kOperators))], {x, Ints({Below(Rank(x))})},
               {{"keepdims", Below(2)}});
}

ValueId RandomGraph::LayerNorm(ValueId x) {
  const ValueId mean = Apply("ReduceMean", {x, Ints({-1})});
  const ValueId centered = Apply("Sub", {x, mean});
  const ValueId square = Below(2) == 0 ? Apply("Mul", {centered, centered})
                                       : Apply("Pow", {centered, AddConstant({dtype_, {}}, {2.0})});
  const ValueId variance = Apply("ReduceMean", {square, Ints({-1})});
  const ValueId deviation =
      Apply("Sqrt", {Apply("Add", {variance, AddConstant({dtype_, {}}, {1e-3})})});
  const ValueId y = Apply("Div", {centered, deviation});
  if (y == kNoValue || Below(3) == 0) return y;
  return Apply("Add",
               {Apply("Mul", {y, Constant({ShapeOf(x).back()})}), Constant({ShapeOf(x).back()})});
}

ValueId RandomGraph::SpelledSoftmax(ValueId x) {
  const ValueId exp = Apply("Exp", {Apply("Sub", {x, Apply("ReduceMax", {x, Ints({-1})})})});
  return Apply("Div", {exp, Apply("ReduceSum", {exp, Ints({-1})})});
}

ValueId RandomGraph::Gelu(ValueId x) {
  const ValueId erf = Apply("Erf", {Apply("Div", {x, AddConstant({dtype_, {}}, {1.5})})});
  const ValueId y = Apply("Mul", {x, Apply("Add", {erf, AddConstant({dtype_, {}}, {1.0})})});
  return Apply("Mul", {y, AddConstant({dtype_, {}}, {0.5})});
}

ValueId RandomGraph::Swish(ValueId x) {
  static constexpr const char* kOperators[] = {"Sigmoid", "HardSigmoid", "Tanh"};
  return Apply("Mul", {x, Apply(kOperators[Below(std::size(kOperators))], {x})});
}

ValueId RandomGraph::Attention(ValueId x) {
  if (Rank(x) < 2) return kNoValue;
  const int64_t width = ShapeOf(x).back();
  const auto projection = [&] { return Apply("MatMul", {x, Constant({width, 3})}); };
  Ints64 permutation(Rank(x));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::swap(permutation[Rank(x) - 1], permutation[Rank(x) - 2]);
  const ValueId q = projection(), v = projection();
  const ValueId k = Apply("Transpose", {projection()}, {{"perm", permutation}});
  ValueId scores = Apply("Mul", {Apply("MatMul", {q, k}), AddConstant({dtype_, {}}, {0.5})});
  if (scores != kNoValue && Below(2) == 0) {
    scores = Apply("Add", {scores, Constant({ShapeOf(scores).back()})});
  }
  const ValueId y = Apply("MatMul", {Apply("Softmax", {scores}), v});
  return Below(2) == 0 ? y : Apply("Transpose", {y}, {{"perm", permutation}});
}

// All scales are powers of two, so that f32 represents every value exactly.
ValueId RandomGraph::Quantized(ValueId x) {
  if (Rank(x) < 2) return kNoValue;
  constexpr int64_t kF32 = 1;
  const auto scale = [&](const Shape& shape) {
    const TensorType type{ir::DType::kF32, shape};
    ir::Scalars elements(type.elements());
    for (ir::Scalar& element : elements) element = std::ldexp(1, static_cast<int>(-Below(4) - 2));
    return AddConstant(type, elements);
  };
  const auto bytes = [&](const Shape& shape) {
    const TensorType type{ir::DType::kI8, shape};
    ir::Scalars elements(type.elements());
    for (ir::Scalar& element : elements) element = Below(256) - 128;
    return AddConstant(type, elements);
  };
  const ValueId step = scale({});
  const ir::DType dtype = Below(2) == 0 ? ir::DType::kU8 : ir::DType::kI8;
  const ValueId zero = AddConstant({dtype, {}}, {ir::Scalar(Below(2) * 120)});
  const auto quantized = [&](ValueId real) {
    return Apply("DequantizeLinear", {Apply("QuantizeLinear", {real, step, zero}), step, zero});
  };
  const int64_t own_type = dtype_ == ir::DType::kF64 ? 11 : kF32;
  const ValueId real = Apply("Cast", {x}, {{"to", kF32}});
  if (Rank(x) > 2 && Below(3) == 0) {
    Shape weights = {1 + Below(3), ShapeOf(x)[1]};
    weights.resize(Rank(x), 2);
    const ValueId w_zero = AddConstant({ir::DType::kI8, {}}, {ir::Scalar(Below(2) * 5)});
    const ValueId sum = Apply(
        "ConvInteger", {Apply("QuantizeLinear", {real, step, zero}), bytes(weights), zero, w_zero},
        {{"pads", Ints64(2 * (Rank(x) - 2), Below(2))}});
    return Apply("Cast", {sum}, {{"to", own_type}});
  }
  ValueId y = quantized(real);
  if (Below(2) == 0) y = quantized(Apply("Transpose", {y}));
  if (y == kNoValue) return y;
  const int64_t out = 1 + Below(3);
  const bool per_channel = Below(2) == 0;
  if (Rank(y) > 2) {
    Shape weights = {out, ShapeOf(y)[1]};
    weights.resize(Rank(y), 2);
    std::vector<ValueId> inputs = {
        y, Apply("DequantizeLinear", {bytes(weights), scale(per_channel ? Shape{out} : Shape{})},
                 {{"axis", int64_t{0}}})};
    if (Below(2) == 0) {
      const ValueId bias = AddConstant({ir::DType::kI32, {out}}, ir::Scalars(out, Below(2000)));
      inputs.push_back(Apply("DequantizeLinear", {bias, scale({})}));
    }
    y = Apply("Conv", inputs, {{"pads", Ints64(2 * (Rank(y) - 2), Below(2))}});
  } else {
    const bool transposed = Below(2) == 0;
    const int64_t inner = ShapeOf(y)[1];
    const ValueId weights = Apply("DequantizeLinear",
                                  {bytes(transposed ? Shape{out, inner} : Shape{inner, out}),
                                   scale(per_channel ? Shape{out} : Shape{})},
                                  {{"axis", int64_t{transposed ? 0 : 1}}});
    y = transposed ? Apply("Gemm", {y, weights}, {{"transB", int64_t{1}}, {"alpha", 0.5}})
                   : Apply("MatMul", {y, weights});
  }
  if (Below(2) == 0) y = quantized(Apply("Relu", {y}));
  return Apply("Cast", {y}, {{"to", own_type}});
}

ValueId RandomGraph::Unchanged(ValueId x) {
  switch (Below(4)) {
    case 0:
      return Apply("Identity", {x});
    case 1:
      return Apply("Dropout", {x});
    case 2:
      return Apply("Expand", {x, Ints(ShapeOf(x))});
    default:
      return Apply("Pad", {x, Ints(Ints64(2 * Rank(x), 0))});
  }
}

ValueId RandomGraph::OfConstants(ValueId x) {
  const ValueId sum = Apply("Add", {Constant({}), Constant(ShapeOf(x))});
  return Apply("Mul", {x, Apply("Abs", {sum})});
}

ValueId RandomGraph::Again(ValueId x) {
  if (graph_.nodes.empty()) return x;
  const Node node = graph_.nodes[Below(static_cast<int64_t>(graph_.nodes.size()))];
  if (graph_.value(node.outputs[0]).type.dtype != dtype_) return x;
  return Apply("Add", {Apply(node.op, node.inputs, node.attributes), node.outputs[0]});
}

std::string Difference(const std::vector<ir::Scalars>& expected,
                       const std::vector<ir::Scalars>& actual, double tolerance) {
  if (expected.size() != actual.size()) return "another number of outputs";
  for (size_t o = 0; o < expected.size(); ++o) {
    if (expected[o].size() != actual[o].size()) return absl::StrCat("another size of output ", o);
    for (size_t i = 0; i < expected[o].size(); ++i) {
      const double a = expected[o][i].real(), b = actual[o][i].real();
      if (a == b || (std::isnan(a) && std::isnan(b))) continue;
      if (std::abs(a - b) <= tolerance * (1 + std::abs(a))) continue;
      return absl::StrCat("element ", i, " of output ", o, " is ", b, " instead of ", a);
    }
  }
  return "";
}

}  // namespace hone::graph
