#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "client/network/graph/op/window.h"
#include "client/network/graph/pass/edit.h"
#include "client/network/graph/pass/passes.h"
#include "tests/client/network/graph/net.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using testing::ElementsAre;

const std::map<std::string, Attribute> kSame = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
const std::map<std::string, Attribute> kHalf = {{"kernel_shape", std::vector<int64_t>{2, 2}},
                                                {"strides", std::vector<int64_t>{2, 2}}};

ValueId Conv(Net& net, ValueId x, int64_t inputs, int64_t outputs) {
  return net.Apply("Conv", {x, net.Weights({outputs, inputs, 3, 3})}, kSame);
}

// The operators, with a mark on those with channels last.
std::vector<std::string> Layouts(const Net& net) {
  std::vector<std::string> layouts;
  for (const Node& node : net.graph.nodes) {
    layouts.push_back(node.op + (node.attributes.contains(kChannelsLast) ? " last" : ""));
  }
  return layouts;
}

void Assign(Net& net) {
  ASSERT_THAT(net.graph.Verify(), IsOk());
  const auto changed = AssignLayouts(net.graph);
  ASSERT_THAT(changed, IsOk());
  ASSERT_THAT(RemoveDead(net.graph), IsOk());
  ASSERT_THAT(net.graph.Verify(), IsOk()) << net.graph.ToText();
}

TEST(AssignLayoutsTest, ConvolutionsAndWhatIsBetweenThem) {
  Net net;
  const ValueId x = net.Input({1, 32, 32, 32});
  const ValueId a = net.Apply("Relu", {Conv(net, x, 32, 32)});
  const ValueId b = net.Apply("MaxPool", {net.Apply("Add", {a, net.Weights({32, 1, 1})})}, kHalf);
  net.graph.outputs = {net.Apply("GlobalAveragePool", {Conv(net, b, 32, 32)})};
  Assign(net);
  EXPECT_THAT(Layouts(net), ElementsAre("Transpose", "Conv last", "Relu", "Add", "MaxPool last",
                                        "Conv last", "GlobalAveragePool last", "Transpose"));
}

TEST(AssignLayoutsTest, ConvolutionsOfBytes) {
  Net net;
  const ValueId step = net.Weights({}, {0.5}), zero = net.Bytes({}, {0}, ir::DType::kU8);
  const ValueId w = net.Bytes({32, 32, 3, 3}, std::vector<int64_t>(32 * 32 * 9, 1));
  const ValueId x = net.Apply("QuantizeLinear", {net.Input({1, 32, 32, 32}), step, zero});
  const ValueId a =
      net.Apply("Cast", {net.Apply("ConvInteger", {x, w, zero}, kSame)}, {{"to", int64_t{1}}});
  const ValueId b = net.Apply("QuantizeLinear", {a, step, zero});
  net.graph.outputs = {net.Apply("ConvInteger", {b, w, zero}, kSame)};
  Assign(net);
  EXPECT_THAT(Layouts(net), ElementsAre("QuantizeLinear", "Transpose", "ConvInteger last", "Cast",
                                        "QuantizeLinear", "ConvInteger last", "Transpose"))
      << "bytes are transposed rather than floats";
}

TEST(AssignLayoutsTest, ThePadsOfAPadMove) {
  Net net;
  const ValueId x = Conv(net, net.Input({1, 32, 32, 32}), 32, 32);
  const ValueId padded = net.Apply("Pad", {x, net.Ints({0, 0, 1, 2, 0, 0, 3, 4})});
  net.graph.outputs = {Conv(net, padded, 32, 32)};
  Assign(net);
  EXPECT_THAT(Layouts(net), ElementsAre("Transpose", "Conv last", "Pad", "Conv last", "Transpose"));
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[2].inputs[1]), ElementsAre(0, 1, 2, 0, 0, 3, 4, 0));
}

TEST(AssignLayoutsTest, AValueIsTransposedOnce) {
  Net net;
  const ValueId x = net.Input({1, 32, 32, 32});
  const ValueId a = Conv(net, x, 32, 32), b = Conv(net, x, 32, 32);
  net.graph.outputs = {net.Apply("Add", {a, b})};
  Assign(net);
  EXPECT_THAT(Layouts(net), ElementsAre("Transpose", "Conv last", "Conv last", "Add", "Transpose"));
}

TEST(AssignLayoutsTest, TranspositionsOfTheModelVanish) {
  Net net;  // too little work to transpose for
  const ValueId x = net.Apply("Transpose", {net.Input({1, 14, 14, 8})},
                              {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  net.graph.outputs = {net.Apply("Transpose", {net.Conv(net.Apply("Relu", {x}), 8)},
                                 {{"perm", std::vector<int64_t>{0, 2, 3, 1}}})};
  ASSERT_THAT(Optimize(net.graph), IsOk());
  ASSERT_THAT(net.graph.Verify(), IsOk()) << net.graph.ToText();
  EXPECT_THAT(Layouts(net), ElementsAre("Relu", "Conv last"));
}

TEST(AssignLayoutsTest, TheAxisOfAConcatMoves) {
  Net net;
  const ValueId x = net.Input({1, 32, 32, 32});
  const ValueId joined =
      net.Apply("Concat", {Conv(net, x, 32, 32), Conv(net, x, 32, 16)}, {{"axis", int64_t{1}}});
  net.graph.outputs = {net.Apply("Relu", {Conv(net, joined, 48, 32)})};
  Assign(net);
  const auto concat = std::find_if(net.graph.nodes.begin(), net.graph.nodes.end(),
                                   [](const Node& node) { return node.op == "Concat"; });
  ASSERT_NE(concat, net.graph.nodes.end());
  EXPECT_EQ(std::get<int64_t>(concat->attributes.at("axis")), 3);
}

TEST(AssignLayoutsTest, AConvolutionThatIsNotWorthItStays) {
  Net net;
  const ValueId x = net.Input({1, 2, 64, 64});
  net.graph.outputs = {net.Apply("Conv", {x, net.Weights({2, 2, 1, 1})})};
  Assign(net);
  EXPECT_THAT(Layouts(net), ElementsAre("Conv"));
}

// Vectors along the short rows of an image are slow if each channel has its own window.
TEST(AssignLayoutsTest, ADepthwiseConvolutionIsWorthMore) {
  Net net;
  const ValueId x = net.Input({1, 32, 14, 14});
  net.graph.outputs = {net.Apply("Conv", {x, net.Weights({32, 1, 5, 5})},
                                 {{"group", int64_t{32}}, {"pads", std::vector<int64_t>(4, 2)}})};
  Assign(net);
  EXPECT_THAT(Layouts(net), ElementsAre("Transpose", "Conv last", "Transpose"));
}

TEST(AssignLayoutsTest, TheSecondTimeNothingChanges) {
  Net net;
  net.graph.outputs = {Conv(net, net.Input({1, 32, 32, 32}), 32, 32)};
  Assign(net);
  HONE_ASSERT_OK_AND_ASSIGN(const auto again, AssignLayouts(net.graph));
  EXPECT_FALSE(again);
}

}  // namespace
}  // namespace hone::graph
