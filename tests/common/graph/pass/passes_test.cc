#include "common/graph/pass/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/graph/interpreter.h"
#include "common/graph/pass/edit.h"
#include "tests/common/graph/net.h"

namespace hone::graph {
namespace {

using testing::ElementsAre;

using Ints = std::vector<int64_t>;

// Applies a pass and gives what it returned.
bool Changes(absl::StatusOr<bool> (*pass)(Graph&), Graph& graph) {
  const auto changed = pass(graph);
  EXPECT_TRUE(changed.ok()) << changed.status();
  const absl::Status status = graph.Verify();
  EXPECT_TRUE(status.ok()) << status;
  return changed.value_or(false);
}

bool Folds(Graph& graph) { return *FoldConstants(graph); }

TEST(FoldConstantsTest, ComputesWhatDependsOnConstantsOnly) {
  Net net;
  const ValueId c = net.Apply("Add", {net.Weights({2}, {1, -2}), net.Weights({}, {1})});
  net.graph.outputs = {net.Apply("Mul", {net.Input({2}), net.Apply("Abs", {c})})};
  EXPECT_TRUE(Folds(net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("Mul"));
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[0].inputs[1]), ElementsAre(2, 1));
  EXPECT_FALSE(Folds(net.graph));
}

TEST(FoldConstantsTest, KeepsLargeResultsAsNodes) {
  Net net;
  const ValueId c = net.Apply("Add", {net.Weights({4, 1}), net.Weights({1, 4})});
  net.graph.outputs = {c};
  EXPECT_FALSE(*FoldConstants(net.graph, 15));
  EXPECT_TRUE(*FoldConstants(net.graph, 16));
  EXPECT_TRUE(net.graph.IsConstant(net.graph.outputs[0]));
}

TEST(RemoveDeadTest, KeepsInputs) {
  Net net;
  const ValueId x = net.Input({2}), y = net.Input({2});
  const ValueId z = net.Apply("Relu", {x});
  net.Apply("Abs", {net.Apply("Add", {y, net.Weights({2})})});
  net.graph.outputs = {z};
  EXPECT_TRUE(Changes(RemoveDead, net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("Relu"));
  EXPECT_EQ(net.graph.values.size(), 3u);
  EXPECT_EQ(net.graph.inputs.size(), 2u);
  EXPECT_FALSE(Changes(RemoveDead, net.graph));
}

TEST(RemoveIdentityTest, OutputsKeepTheirNames) {
  Net net;
  const ValueId x = net.Input({2});
  const ValueId y = net.Apply("Cast", {net.Apply("Relu", {x})}, {{"to", int64_t{1}}});
  net.graph.outputs = {y};
  const std::string name = net.graph.value(y).name;
  EXPECT_TRUE(Changes(RemoveIdentity, net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("Relu"));
  EXPECT_EQ(net.graph.value(net.graph.outputs[0]).name, name);
}

TEST(RemoveIdentityTest, AnOutputThatIsAnInputStays) {
  Net net;
  net.graph.outputs = {net.Apply("Cast", {net.Input({2})}, {{"to", int64_t{1}}})};
  EXPECT_FALSE(Changes(RemoveIdentity, net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("Cast"));
}

TEST(ShareCommonSubexpressionsTest, SharesNodesAndConstants) {
  Net net;
  const ValueId x = net.Input({2});
  const ValueId a = net.Apply("Add", {x, net.Weights({2}, {1, 2})});
  const ValueId b = net.Apply("Add", {x, net.Weights({2}, {1, 2})});
  const ValueId c = net.Apply("Add", {x, net.Weights({2}, {1, 3})});
  net.graph.outputs = {net.Apply("Mul", {net.Apply("Mul", {a, b}), c})};
  EXPECT_TRUE(Changes(ShareCommonSubexpressions, net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("Add", "Add", "Mul", "Mul"));
  EXPECT_FALSE(Changes(ShareCommonSubexpressions, net.graph));
}

TEST(FoldBatchNormTest, ScalesAndShiftsWeights) {
  Net net;
  const ValueId x = net.Input({1, 1, 2, 2});
  const ValueId conv = net.Apply("Conv", {x, net.Weights({2, 1, 1, 1}, {1, 2}), net.Weights({2})});
  const ValueId norm = net.Apply("BatchNormalization",
                                 {conv, net.Weights({2}, {4, 6}), net.Weights({2}, {1, 1}),
                                  net.Weights({2}, {0.5, 1.5}), net.Weights({2}, {4, 9})},
                                 {{"epsilon", 0.0}});
  net.graph.outputs = {net.Apply("Mul", {norm, net.Weights({2, 1, 1}, {2, 3})})};
  EXPECT_TRUE(Changes(FoldBatchNorm, net.graph));
  ASSERT_THAT(net.Operators(), ElementsAre("Conv"));
  // ((w·x + 0.5 − mean)·scale/deviation + 1)·factor
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[0].inputs[1]), ElementsAre(4, 12));
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[0].inputs[2]), ElementsAre(2, -3));
}

TEST(FoldBatchNormTest, ProductsKeepTheirBiasAsASum) {
  Net net;
  const ValueId p = net.Apply("MatMul", {net.Input({2, 1}), net.Weights({1, 2}, {1, 2})});
  const ValueId s = net.Apply("Add", {net.Weights({2}, {1, 2}), p});
  net.graph.outputs = {net.Apply("Mul", {s, net.Weights({2}, {3, 4})})};
  EXPECT_TRUE(Changes(FoldBatchNorm, net.graph));
  ASSERT_THAT(net.Operators(), ElementsAre("MatMul", "Add"));
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[0].inputs[1]), ElementsAre(3, 8));
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[1].inputs[1]), ElementsAre(3, 8));
  EXPECT_FALSE(Changes(FoldBatchNorm, net.graph));
}

TEST(FoldBatchNormTest, ProductsThatAreReadElsewhereStay) {
  Net net;
  const ValueId p = net.Apply("MatMul", {net.Input({2, 1}), net.Weights({1, 2})});
  net.graph.outputs = {net.Apply("Mul", {p, net.Weights({2})}), p};
  EXPECT_FALSE(Changes(FoldBatchNorm, net.graph));
  net.graph.outputs.pop_back();
  EXPECT_TRUE(Changes(FoldBatchNorm, net.graph));
}

TEST(FoldBatchNormTest, FactorsThatDifferWithinAChannelStay) {
  Net net;
  const ValueId p = net.Apply("MatMul", {net.Input({2, 1}), net.Weights({1, 2})});
  net.graph.outputs = {net.Apply("Mul", {p, net.Weights({2, 1})})};
  EXPECT_FALSE(Changes(FoldBatchNorm, net.graph));
}

class FoldPaddingTest : public testing::Test {
 protected:
  ValueId Pad(const Ints& pads, std::vector<double> value = {}) {
    std::vector<ValueId> inputs = {net_.Input({1, 2, 4, 4}), net_.Ints(pads)};
    if (!value.empty()) inputs.push_back(net_.Weights({}, value));
    return net_.Apply("Pad", inputs);
  }
  ValueId Pool(const std::string& op, ValueId x, std::map<std::string, Attribute> attributes = {}) {
    attributes["kernel_shape"] = Ints{2, 2};
    return net_.Apply(op, {x}, attributes);
  }
  std::vector<std::string> OperatorsAfter(ValueId output) {
    net_.graph.outputs = {output};
    Changes(FoldPadding, net_.graph);
    return net_.Operators();
  }
  Net net_;
};

TEST_F(FoldPaddingTest, ConvolutionsPadThemselves) {
  const ValueId y = net_.Conv(Pad({0, 0, 1, 0, 0, 0, 2, 1}), 3, 3);
  EXPECT_THAT(OperatorsAfter(y), ElementsAre("Conv"));
  EXPECT_EQ(std::get<Ints>(net_.graph.nodes[0].attributes["pads"]), Ints({2, 1, 3, 2}));
}

TEST_F(FoldPaddingTest, ChannelsAreNotPaddedByConvolutions) {
  EXPECT_THAT(OperatorsAfter(net_.Conv(Pad({0, 1, 1, 0, 0, 0, 1, 0}), 3)),
              ElementsAre("Pad", "Conv"));
}

TEST_F(FoldPaddingTest, OtherValuesThanZeroStay) {
  EXPECT_THAT(OperatorsAfter(net_.Conv(Pad({0, 0, 1, 0, 0, 0, 1, 0}, {0.5}), 3)),
              ElementsAre("Pad", "Conv"));
}

TEST_F(FoldPaddingTest, AveragesCountThePadding) {
  const ValueId y = Pool("AveragePool", Pad({0, 0, 1, 0, 0, 0, 1, 0}));
  EXPECT_THAT(OperatorsAfter(y), ElementsAre("AveragePool"));
  EXPECT_EQ(std::get<int64_t>(net_.graph.nodes[0].attributes["count_include_pad"]), 1);
}

TEST_F(FoldPaddingTest, AveragesThatDoNotCountTheirOwnPaddingStay) {
  const ValueId y =
      Pool("AveragePool", Pad({0, 0, 1, 0, 0, 0, 1, 0}), {{"pads", Ints{1, 1, 1, 1}}});
  EXPECT_THAT(OperatorsAfter(y), ElementsAre("Pad", "AveragePool"));
}

TEST_F(FoldPaddingTest, MaximaPadWithInfinityOnly) {
  EXPECT_THAT(OperatorsAfter(Pool("MaxPool", Pad({0, 0, 1, 0, 0, 0, 1, 0}))),
              ElementsAre("Pad", "MaxPool"));
  net_ = Net();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_THAT(OperatorsAfter(Pool("MaxPool", Pad({0, 0, 1, 0, 0, 0, 1, 0}, {-infinity}))),
              ElementsAre("MaxPool"));
}

TEST(MergeReshapesTest, TheLastShapeRemains) {
  Net net;
  const ValueId a = net.Apply("Reshape", {net.Input({2, 6}), net.Ints({3, 4})});
  net.graph.outputs = {net.Apply("Unsqueeze", {a, net.Ints({0})})};
  EXPECT_TRUE(Changes(MergeReshapes, net.graph));
  EXPECT_TRUE(Changes(RemoveDead, net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("Reshape"));
  EXPECT_FALSE(Changes(MergeReshapes, net.graph));
}

TEST(MergeTransposesTest, PermutationsAreComposed) {
  Net net;
  const ValueId a = net.Apply("Transpose", {net.Input({2, 3, 4})}, {{"perm", Ints{1, 2, 0}}});
  net.graph.outputs = {net.Apply("Transpose", {a}, {{"perm", Ints{0, 2, 1}}})};
  EXPECT_TRUE(Changes(MergeTransposes, net.graph));
  EXPECT_TRUE(Changes(RemoveDead, net.graph));
  ASSERT_THAT(net.Operators(), ElementsAre("Transpose"));
  EXPECT_EQ(std::get<Ints>(net.graph.nodes[0].attributes["perm"]), Ints({1, 0, 2}));
}

TEST(MergeTransposesTest, DimensionsOfOneElementNeedNoCopy) {
  Net net;
  net.graph.outputs = {net.Apply("Transpose", {net.Input({2, 1, 4})}, {{"perm", Ints{1, 0, 2}}})};
  EXPECT_TRUE(Changes(MergeTransposes, net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("Reshape"));
}

TEST(OptimizeTest, PassesHelpEachOther) {
  Net net;
  const ValueId x = net.Input({2, 3});
  const ValueId a = net.Apply("Transpose", {net.Apply("Transpose", {x})});
  const ValueId b =
      net.Apply("Reshape", {net.Apply("Reshape", {x, net.Ints({6})}), net.Ints({2, 3})});
  const ValueId zero = net.Apply("Sub", {net.Weights({}), net.Weights({})});
  net.graph.outputs = {net.Apply("Add", {net.Apply("Mul", {a, b}), zero})};
  const absl::Status status = Optimize(net.graph);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(net.Operators(), ElementsAre("Mul", "Add"));
}

}  // namespace
}  // namespace hone::graph
