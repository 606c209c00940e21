// Convolutions of bytes whose image has a zero point or padding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_join.h"
#include "client/network/graph/group.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"
#include "tests/client/network/graph/net.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;

void UseIntegers(Net& net) {
  for (const auto pass : {UseIntegerProducts, RemoveDead}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto changed, pass(net.graph));
    EXPECT_TRUE(changed);
    ASSERT_THAT(net.graph.Verify(), IsOk());
  }
}

// A convolution of an image [1, channels, 3, 4] with kernels [3, channels, 2, 3] of known bytes,
// dequantized.
ValueId ConvOfImage(Net& net, ValueId x, const Ints& pads) {
  const int64_t channels = net.graph.value(x).type.shape[1];
  std::vector<int64_t> bytes(3 * channels * 2 * 3);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<int64_t>(i * 37 % 255) - 127;
  const ValueId w = net.Apply("DequantizeLinear",
                              {net.Bytes({3, channels, 2, 3}, bytes), net.Weights({}, {0.25})});
  return net.Apply("Conv", {x, w}, {{"pads", pads}});
}

std::vector<ir::Scalars> SomeImage(int channels) {
  ir::Scalars elements;
  for (int i = 0; i < 12 * channels; ++i) elements.emplace_back(i % 7 - 3.0);
  return {elements};
}

// Returns the shape of what is added to the sums of a convolution, and whether its image is padded.
Ints ShapeOfShift(int channels, const Ints& pads, bool* pads_image) {
  Net net;
  const ValueId x = net.Apply("Relu", {net.Input({1, channels, 3, 4})});
  net.graph.outputs = {ConvOfImage(net, net.Quantized(x, 0.5, 2), pads)};
  const auto expected = Interpret(net.graph, SomeImage(channels));
  UseIntegers(net);
  EXPECT_EQ(*Interpret(net.graph, SomeImage(channels)), *expected);
  *pads_image = std::ranges::count(net.graph.nodes, "Pad", &Node::op) > 0;
  const auto add = std::ranges::find(net.graph.nodes, "Add", &Node::op);
  return add == net.graph.nodes.end() ? Ints() : net.graph.value(add->inputs[1]).type.shape;
}

// Padding leaves taps out, so what the zero point adds depends on the position. With few channels
// it is faster to pad the image with the zero point.
TEST(IntegerConvolutionTest, SubtractsWhatAZeroPointAdds) {
  bool pads_image = false;
  EXPECT_EQ(ShapeOfShift(128, {0, 0, 0, 0}, &pads_image), Ints({3, 1, 1}));
  EXPECT_FALSE(pads_image);
  EXPECT_EQ(ShapeOfShift(128, {1, 1, 0, 1}, &pads_image), Ints({3, 3, 4}));
  EXPECT_FALSE(pads_image);
  EXPECT_EQ(ShapeOfShift(128, {0, 0, 0, 2}, &pads_image), Ints({3, 1, 4}));
  EXPECT_FALSE(pads_image);
  EXPECT_EQ(ShapeOfShift(8, {1, 1, 0, 1}, &pads_image), Ints({3, 1, 1}));
  EXPECT_TRUE(pads_image);
}

// Padding that is quantized like the image needs no conditions. The kernels get a fourth tap.
TEST(IntegerConvolutionTest, PadsAnInputBeforeItIsQuantized) {
  for (const int64_t zero_point : {0, 2}) {
    Net net;
    net.graph.outputs = {
        ConvOfImage(net, net.Quantized(net.Input({1, 2, 3, 4}), 0.5, zero_point), {1, 1, 0, 1})};
    const auto expected = Interpret(net.graph, SomeImage(2));
    UseIntegers(net);
    EXPECT_EQ(*Interpret(net.graph, SomeImage(2)), *expected);
    ASSERT_THAT(absl::StrJoin(net.Operators(), " "),
                zero_point == 0 ? "Pad QuantizeLinear ConvInteger Cast Mul"
                                : "Pad QuantizeLinear ConvInteger Add Cast Mul");
    const Node& conv = net.graph.nodes[2];
    EXPECT_EQ(net.graph.value(conv.inputs[0]).type.shape, Ints({1, 2, 4, 7}));
    EXPECT_EQ(net.graph.value(conv.inputs[1]).type.shape, Ints({3, 2, 2, 4}));
  }
}

// Another reader needs the quantized image without padding.
TEST(IntegerConvolutionTest, DoesNotQuantizeAnInputTwice) {
  Net net;
  const ValueId x = net.Quantized(net.Input({1, 2, 3, 4}), 0.5, 2);
  net.graph.outputs = {ConvOfImage(net, x, {1, 1, 0, 1}), net.Apply("Relu", {x})};
  UseIntegers(net);
  EXPECT_EQ(std::ranges::count(net.graph.nodes, "QuantizeLinear", &Node::op), 1);
}

// A convolution with one channel, weights of 1 and 2 with a scale of 0.25, and a bias of 8 and -8.
ValueId ConvWithBias(Net& net, double bias_scale) {
  const ValueId w =
      net.Apply("DequantizeLinear", {net.Bytes({2, 1, 1}, {1, 2}), net.Weights({}, {0.25})});
  const ValueId bias = net.Apply("DequantizeLinear", {net.Bytes({2}, {8, -8}, ir::DType::kI32),
                                                      net.Weights({}, {bias_scale})});
  return net.Apply("Conv", {net.Quantized(net.Input({1, 1, 3}), 0.5, 2), w, bias});
}

// A bias with the scale of the sums is an integer that is added to them.
TEST(IntegerConvolutionTest, AddsABiasToTheSums) {
  const std::vector<ir::Scalars> input = {{-1.0, 0.5, 3.0}};
  for (const double scale : {0.125, 0.25}) {
    Net net;
    net.graph.outputs = {ConvWithBias(net, scale)};
    const auto expected = Interpret(net.graph, input);
    UseIntegers(net);
    EXPECT_EQ(*Interpret(net.graph, input), *expected);
    EXPECT_EQ(std::ranges::count(net.graph.nodes, "Add", &Node::op), scale == 0.125 ? 1 : 2);
  }
}

// A column that is added to the rows of a product is not a number per channel.
TEST(IntegerConvolutionTest, KeepsABiasPerRow) {
  Net net;
  const ValueId x = net.Quantized(net.Input({2, 3}), 0.5, 2);
  const ValueId w = net.Apply("DequantizeLinear",
                              {net.Bytes({3, 2}, {1, 2, 3, 4, 5, 6}), net.Weights({}, {0.25})});
  const ValueId bias = net.Apply(
      "DequantizeLinear", {net.Bytes({2, 1}, {8, -8}, ir::DType::kI32), net.Weights({}, {0.125})});
  net.graph.outputs = {net.Apply("Gemm", {x, w, bias})};
  const std::vector<ir::Scalars> input = {{-1.0, 0.5, 3.0, 0.0, 1.0, 2.0}};
  const auto expected = Interpret(net.graph, input);
  UseIntegers(net);
  EXPECT_EQ(*Interpret(net.graph, input), *expected);
}

// The channels 0 and 1 have the first scale of the bias, and 2 and 3 the second one.
TEST(IntegerConvolutionTest, KeepsABiasWithAScalePerBlock) {
  Net net;
  const ValueId w =
      net.Apply("DequantizeLinear",
                {net.Bytes({4, 1, 1}, {1, 2, 3, 4}), net.Weights({4}, {0.25, 0.5, 0.25, 0.5})},
                {{"axis", int64_t{0}}});
  const ValueId bias =
      net.Apply("DequantizeLinear",
                {net.Bytes({4}, {8, -8, 4, 2}, ir::DType::kI32), net.Weights({2}, {0.125, 0.25})},
                {{"axis", int64_t{0}}, {"block_size", int64_t{2}}});
  net.graph.outputs = {net.Apply("Conv", {net.Quantized(net.Input({1, 1, 3}), 0.5, 2), w, bias})};
  const std::vector<ir::Scalars> input = {{-1.0, 0.5, 3.0}};
  const auto expected = Interpret(net.graph, input);
  UseIntegers(net);
  EXPECT_EQ(*Interpret(net.graph, input), *expected);
  const auto add =
      std::ranges::find(net.graph.nodes.rbegin(), net.graph.nodes.rend(), "Add", &Node::op);
  EXPECT_EQ(net.graph.value(add->outputs[0]).type.dtype, ir::DType::kF32);
}

// A sum of 0 stays 0, although the product of the scales is infinite in f32.
TEST(IntegerConvolutionTest, LeavesScalesWhoseProductOverflows) {
  Net net;
  const ValueId w =
      net.Apply("DequantizeLinear", {net.Bytes({1, 1, 1}, {1}), net.Weights({}, {1e30})});
  net.graph.outputs = {net.Apply("Conv", {net.Quantized(net.Input({1, 1, 1}), 1e30, 2), w})};
  EXPECT_FALSE(*UseIntegerProducts(net.graph));
}

// The sums are multiplied by one factor, and nothing is divided.
TEST(IntegerConvolutionTest, AppliesTheScaleOfTheResultToTheFactor) {
  for (const bool rectified : {false, true}) {
    Net net;
    ValueId y = ConvWithBias(net, 0.125);
    if (rectified) y = net.Apply("Relu", {y});
    net.graph.outputs = {net.Quantized(y, 0.5, 3)};
    const std::vector<ir::Scalars> input = {{-1.0, 0.5, 3.0}};
    const auto expected = Interpret(net.graph, input);
    UseIntegers(net);
    EXPECT_TRUE(*FoldScale(net.graph));
    EXPECT_FALSE(*FoldScale(net.graph));
    EXPECT_EQ(*Interpret(net.graph, input), *expected);
    const auto mul = std::ranges::find(net.graph.nodes, "Mul", &Node::op);
    ASSERT_NE(mul, net.graph.nodes.end());
    EXPECT_EQ(Reals(net.graph, mul->inputs[1]), std::vector<double>{0.25});
    const Node& quantize = net.graph.nodes[net.graph.nodes.size() - 2];
    EXPECT_EQ(Reals(net.graph, quantize.inputs[1]), std::vector<double>{1});
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto group,
        MakeGroup(net.graph, {static_cast<int>(net.graph.nodes.size()) - 2}, "quantize"));
    EXPECT_THAT(group.workload.ToText(), testing::Not(testing::HasSubstr("/")));
  }
}

// A sum of 0 gives the zero point, although the quotient of the scales is infinite in the type of
// the factor.
TEST(IntegerConvolutionTest, KeepsAScaleWhoseQuotientOverflows) {
  const struct {
    ir::DType dtype;
    int64_t number;  // ONNX's number of the type
    double factor, scale;
  } kCases[] = {{ir::DType::kF32, 1, 100, 1e-40}, {ir::DType::kF16, 10, 100, 1e-3}};
  for (const auto& c : kCases) {
    Net net;
    const ValueId x = net.Apply("Cast", {net.Input({2}, ir::DType::kI32)}, {{"to", c.number}});
    const ValueId y = net.Apply("Mul", {x, net.Weights({}, {c.factor}, c.dtype)});
    net.graph.outputs = {net.Apply("QuantizeLinear", {y, net.Weights({}, {c.scale}, c.dtype),
                                                      net.Bytes({}, {3}, ir::DType::kU8)})};
    EXPECT_FALSE(*FoldScale(net.graph));
    EXPECT_EQ((*Interpret(net.graph, {{0, 1}}))[0][0], ir::Scalar(3));
  }
}

// Another reader needs the product in its own scale.
TEST(IntegerConvolutionTest, KeepsAScaleThatOthersNeed) {
  Net net;
  const ValueId y = ConvWithBias(net, 0.125);
  net.graph.outputs = {net.Quantized(y, 0.5, 3), net.Apply("Relu", {y})};
  UseIntegers(net);
  EXPECT_FALSE(*FoldScale(net.graph));
}

}  // namespace
}  // namespace hone::graph
