// Convolutions of bytes whose image has a zero point or padding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_join.h"
#include "common/graph/interpreter.h"
#include "common/graph/pass/passes.h"
#include "tests/common/graph/net.h"

namespace hone::graph {
namespace {

using Ints = std::vector<int64_t>;

void UseIntegers(Net& net) {
  for (const auto pass : {UseIntegerProducts, RemoveDead}) {
    const auto changed = pass(net.graph);
    ASSERT_TRUE(changed.ok()) << changed.status();
    EXPECT_TRUE(*changed);
    const absl::Status status = net.graph.Verify();
    ASSERT_TRUE(status.ok()) << status;
  }
}

// A convolution of an image [1, 2, 3, 4] with kernels [3, 2, 2, 3] of known bytes, dequantized.
ValueId ConvOfImage(Net& net, ValueId x, const Ints& pads) {
  std::vector<int64_t> bytes(3 * 2 * 2 * 3);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<int64_t>(i * 37 % 255) - 127;
  const ValueId w =
      net.Apply("DequantizeLinear", {net.Bytes({3, 2, 2, 3}, bytes), net.Weights({}, {0.25})});
  return net.Apply("Conv", {x, w}, {{"pads", pads}});
}

std::vector<ir::Scalars> SomeImage() {
  ir::Scalars elements;
  for (int i = 0; i < 24; ++i) elements.emplace_back(i % 7 - 3.0);
  return {elements};
}

// Padding leaves taps out, so what the zero point adds depends on the position.
TEST(IntegerConvolutionTest, SubtractsWhatAZeroPointAddsAtEachPosition) {
  const auto shape_for = [](const Ints& pads) {
    Net net;
    const ValueId x = net.Apply("Relu", {net.Input({1, 2, 3, 4})});
    net.graph.outputs = {ConvOfImage(net, net.Quantized(x, 0.5, 2), pads)};
    const auto expected = Interpret(net.graph, SomeImage());
    UseIntegers(net);
    EXPECT_EQ(*Interpret(net.graph, SomeImage()), *expected);
    const auto sub = std::ranges::find(net.graph.nodes, "Sub", &Node::op);
    return sub == net.graph.nodes.end() ? Ints() : net.graph.value(sub->inputs[1]).type.shape;
  };
  EXPECT_EQ(shape_for({0, 0, 0, 0}), Ints({3, 1, 1}));
  EXPECT_EQ(shape_for({1, 1, 0, 1}), Ints({3, 3, 4}));
  EXPECT_EQ(shape_for({0, 0, 0, 2}), Ints({3, 1, 4}));
}

// Padding that is quantized like the image needs no conditions. The kernels get a fourth tap.
TEST(IntegerConvolutionTest, PadsAnInputBeforeItIsQuantized) {
  for (const int64_t zero_point : {0, 2}) {
    Net net;
    net.graph.outputs = {
        ConvOfImage(net, net.Quantized(net.Input({1, 2, 3, 4}), 0.5, zero_point), {1, 1, 0, 1})};
    const auto expected = Interpret(net.graph, SomeImage());
    UseIntegers(net);
    EXPECT_EQ(*Interpret(net.graph, SomeImage()), *expected);
    ASSERT_THAT(absl::StrJoin(net.Operators(), " "),
                zero_point == 0 ? "Pad QuantizeLinear ConvInteger Cast Mul"
                                : "Pad QuantizeLinear ConvInteger Sub Cast Mul");
    const Node& conv = net.graph.nodes[2];
    EXPECT_EQ(net.graph.value(conv.inputs[0]).type.shape, Ints({1, 2, 4, 7}));
    EXPECT_EQ(net.graph.value(conv.inputs[1]).type.shape, Ints({3, 2, 2, 4}));
  }
}

// Another reader needs the image without padding.
TEST(IntegerConvolutionTest, DoesNotPadAnInputThatIsQuantizedForOthers) {
  Net net;
  const ValueId x = net.Quantized(net.Input({1, 2, 3, 4}), 0.5, 2);
  net.graph.outputs = {ConvOfImage(net, x, {1, 1, 0, 1}), net.Apply("Relu", {x})};
  UseIntegers(net);
  EXPECT_THAT(net.Operators(), testing::Not(testing::Contains("Pad")));
}

}  // namespace
}  // namespace hone::graph
