#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "client/network/graph/interpreter.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/partition.h"
#include "client/network/graph/pass/passes.h"
#include "common/base/rng.h"
#include "tests/client/network/graph/net.h"
#include "tests/client/network/graph/random_graph.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using testing::ElementsAre;

class JoinAlongDepthTest : public testing::Test {
 protected:
  std::vector<double> Random(int64_t elements) {
    std::vector<double> drawn(elements);
    for (double& element : drawn) element = static_cast<double>(rng_.Below(17)) / 8 - 1;
    return drawn;
  }

  // A convolution with channels last that keeps the size.
  ValueId Conv(ValueId x, int64_t channels, int64_t kernel, int64_t stride = 1) {
    const int64_t inputs = net_.graph.value(x).type.shape[3];
    const ValueId w = net_.Weights({kernel, kernel, inputs, channels},
                                   Random(kernel * kernel * inputs * channels));
    return net_.Apply("Conv", {x, w, net_.Weights({channels}, Random(channels))},
                      {{kChannelsLast, int64_t{1}},
                       {"pads", std::vector<int64_t>(4, kernel / 2)},
                       {"strides", std::vector<int64_t>(2, stride)}});
  }
  ValueId Concat(std::vector<ValueId> parts) {
    return net_.Apply("Concat", std::move(parts), {{"axis", int64_t{-1}}});
  }
  ValueId Pool(const std::string& op, ValueId x) {
    return net_.Apply(op, {x},
                      {{kChannelsLast, int64_t{1}},
                       {"kernel_shape", std::vector<int64_t>{3, 2}},
                       {"strides", std::vector<int64_t>{2, 2}},
                       {"pads", std::vector<int64_t>{1, 0, 1, 1}}});
  }

  // Applies the pass, compares with the interpreter, and returns whether the graph changed.
  bool Apply() {
    Graph& graph = net_.graph;
    EXPECT_THAT(graph.Verify(), IsOk());
    ir::Scalars input(graph.value(graph.inputs[0]).type.elements());
    const std::vector<double> drawn = Random(static_cast<int64_t>(input.size()));
    std::copy(drawn.begin(), drawn.end(), input.begin());
    const std::vector<ir::Scalars> inputs = {input};
    const auto expected = Interpret(graph, inputs);
    EXPECT_THAT(expected, IsOk());
    const auto changed = JoinAlongDepth(graph);
    EXPECT_THAT(changed, IsOk());
    EXPECT_THAT(RemoveDead(graph), IsOk());
    EXPECT_THAT(graph.Verify(), IsOk()) << graph.ToText();
    const auto actual = Interpret(graph, inputs);
    EXPECT_THAT(actual, IsOk());
    EXPECT_EQ(Difference(*expected, *actual, 1e-5), "") << graph.ToText();
    return *changed;
  }

  Rng rng_{1, 0};
  Net net_;
};

TEST_F(JoinAlongDepthTest, ConvolutionsAndPoolingOfJoinedImages) {
  const ValueId x = net_.Input({1, 5, 6, 3});
  const ValueId joined =
      Concat({Conv(x, 4, 1), Conv(x, 4, 3), net_.Apply("Relu", {Conv(x, 4, 3)})});
  const ValueId pooled = net_.Apply("Relu", {Pool("MaxPool", joined)});
  net_.graph.outputs = {Conv(joined, 2, 3, 2), Conv(joined, 5, 1), Conv(pooled, 3, 1),
                        Conv(Pool("AveragePool", joined), 2, 1)};
  EXPECT_TRUE(Apply());
}

TEST_F(JoinAlongDepthTest, NoKernelCopiesTheParts) {
  const ValueId x = net_.Input({1, 8, 8, 3});
  const ValueId joined = Concat({Conv(x, 16, 1), Conv(x, 16, 3)});
  net_.graph.outputs = {net_.Apply("Sigmoid", {net_.Apply("Relu", {Conv(joined, 4, 1)})})};
  EXPECT_TRUE(Apply());
  ASSERT_THAT(Optimize(net_.graph), IsOk());  // removes the reshapes that nothing needs
  HONE_ASSERT_OK_AND_ASSIGN(const auto partition, MakePartition(net_.graph));
  std::vector<std::string> kernels;
  for (const Step& step : partition.steps) {
    if (step.kind == Step::Kind::kKernel) kernels.push_back(net_.graph.nodes[step.nodes[0]].op);
  }
  EXPECT_THAT(kernels, ElementsAre("Conv", "Conv", "Conv"));
}

// The result of the convolution has one element, like the first operand.
TEST_F(JoinAlongDepthTest, ResultsThatAreSubtracted) {
  const ValueId x = net_.Input({1, 1, 1, 3});
  const ValueId y = Conv(Concat({Conv(x, 4, 1), Conv(x, 4, 1)}), 1, 1);
  net_.graph.outputs = {net_.Apply("Sub", {net_.Weights({1, 1, 1, 1}), y})};
  EXPECT_TRUE(Apply());
}

TEST_F(JoinAlongDepthTest, OthersStay) {
  const ValueId x = net_.Input({1, 5, 6, 3});
  const ValueId a = Conv(x, 4, 1), b = Conv(x, 4, 3);
  const ValueId read = Concat({a, b});
  net_.graph.outputs = {
      Conv(Concat({a, Conv(x, 2, 1)}), 2, 1),  // unequal parts
      net_.Apply("Sigmoid", {read}),           // a node that needs the channels in one dimension
      Conv(read, 2, 1)};
  EXPECT_FALSE(Apply());
}

}  // namespace
}  // namespace hone::graph
