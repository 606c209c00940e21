#include "client/network/graph/pass/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "client/network/graph/interpreter.h"
#include "client/network/graph/op/window.h"
#include "client/network/graph/pass/edit.h"
#include "tests/client/network/graph/net.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using testing::ElementsAre;

using Ints = std::vector<int64_t>;

// Applies a pass and gives what it returned.
bool Changes(absl::StatusOr<bool> (*pass)(Graph&), Graph& graph) {
  const auto changed = pass(graph);
  EXPECT_THAT(changed, IsOk());
  EXPECT_THAT(graph.Verify(), IsOk());
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

TEST(FoldConstantsTest, KeepsNodesOfMuchWork) {
  Net net;
  net.graph.outputs = {net.Apply("MatMul", {net.Weights({512, 512}), net.Weights({512, 512})})};
  EXPECT_FALSE(Folds(net.graph));
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

// Large constants are compared as a whole, although only parts of them are looked at first.
TEST(ShareCommonSubexpressionsTest, SharesLargeConstantsThatAreEqual) {
  std::vector<double> elements(5000, 0.5), other = elements;
  other[1234] = 1;
  Net net;
  const ValueId x = net.Input({5000});
  const ValueId a = net.Apply("Add", {x, net.Weights({5000}, elements)});
  const ValueId b = net.Apply("Mul", {a, net.Weights({5000}, elements)});
  net.graph.outputs = {net.Apply("Sub", {b, net.Weights({5000}, other)})};
  EXPECT_TRUE(Changes(ShareCommonSubexpressions, net.graph));
  const std::vector<Node>& nodes = net.graph.nodes;
  EXPECT_EQ(nodes[0].inputs[1], nodes[1].inputs[1]);
  EXPECT_NE(nodes[0].inputs[1], nodes[2].inputs[1]);
}

ValueId Shuffle(Net& net, ValueId x, int64_t groups) {
  const Ints shape = net.graph.value(x).type.shape;
  const Ints parts = {shape[0], groups, shape[1] / groups, shape[2], shape[3]};
  const ValueId split = net.Apply("Reshape", {x, net.Ints(parts)});
  const ValueId exchanged = net.Apply("Transpose", {split}, {{"perm", Ints{0, 2, 1, 3, 4}}});
  return net.Apply("Reshape", {exchanged, net.Ints(shape)});
}

TEST(FoldShufflesTest, TheNextConvolutionReadsTheChannelsInOrder) {
  Net net;
  const ValueId x = Shuffle(net, net.Input({1, 6, 5, 5}), 2);
  net.graph.outputs = {net.Apply("Conv", {x, net.Weights({4, 3, 1, 1})}, {{"group", int64_t{2}}})};
  EXPECT_TRUE(Changes(FoldShuffles, net.graph));
  ASSERT_THAT(net.Operators(), ElementsAre("Conv"));
  EXPECT_EQ(std::get<int64_t>(net.graph.nodes[0].attributes.at(kShuffledGroups)), 2);
  EXPECT_FALSE(Changes(FoldShuffles, net.graph));
}

// A depthwise convolution in between gets its weights and its bias in the other order.
TEST(FoldShufflesTest, PassesDepthwiseConvolutions) {
  Net net;
  const ValueId x = Shuffle(net, net.Input({1, 6, 5, 5}), 2);
  const ValueId each = net.Apply(
      "Conv",
      {x, net.Weights({6, 1, 1, 1}, {0, 1, 2, 3, 4, 5}), net.Weights({6}, {5, 4, 3, 2, 1, 0})},
      {{"group", int64_t{6}}});
  net.graph.outputs = {net.Conv(net.Apply("Relu", {each}), 4)};
  EXPECT_TRUE(Changes(FoldShuffles, net.graph));
  ASSERT_THAT(net.Operators(), ElementsAre("Conv", "Relu", "Conv"));
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[0].inputs[1]), ElementsAre(0, 2, 4, 1, 3, 5));
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[0].inputs[2]), ElementsAre(5, 3, 1, 4, 2, 0));
}

TEST(FoldShufflesTest, OtherReadersKeepTheShuffle) {
  for (const bool is_output : {false, true}) {
    Net net;
    const ValueId x = Shuffle(net, net.Input({1, 6, 5, 5}), 2);
    net.graph.outputs = {net.Conv(x, 4), is_output ? x : net.Apply("Abs", {x})};
    EXPECT_FALSE(Changes(FoldShuffles, net.graph));
  }
}

TEST(FoldShufflesTest, OtherTranspositionsStay) {
  Net net;
  const ValueId split = net.Apply("Reshape", {net.Input({1, 6, 4, 4}), net.Ints({1, 2, 3, 4, 4})});
  const ValueId turned = net.Apply("Transpose", {split}, {{"perm", Ints{0, 2, 1, 4, 3}}});
  net.graph.outputs = {net.Conv(net.Apply("Reshape", {turned, net.Ints({1, 6, 4, 4})}), 4)};
  EXPECT_FALSE(Changes(FoldShuffles, net.graph));
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

// Scaled weights are computed when they are read; equal ones are shared before.
TEST(FoldBatchNormTest, ScaledWeightsAreNotComputed) {
  Net net;
  const ValueId weights = net.Weights({1, 1, 1, 1}, {3});
  std::vector<ValueId> results;
  for (const double scale : {2.0, 2.0, 5.0}) {
    const ValueId conv = net.Apply("Conv", {net.Input({1, 1, 2, 2}), weights});
    results.push_back(net.Apply("Mul", {conv, net.Weights({}, {scale})}));
  }
  net.graph.outputs = results;
  EXPECT_TRUE(Changes(FoldBatchNorm, net.graph));
  EXPECT_TRUE(Changes(ShareCommonSubexpressions, net.graph));
  const std::vector<Node>& nodes = net.graph.nodes;
  ASSERT_EQ(nodes.size(), 3u);
  EXPECT_TRUE(net.graph.value(nodes[0].inputs[1]).constant->is_computed());
  EXPECT_EQ(nodes[0].inputs[1], nodes[1].inputs[1]);
  EXPECT_THAT(Reals(net.graph, nodes[0].inputs[1]), ElementsAre(6));
  EXPECT_THAT(Reals(net.graph, nodes[2].inputs[1]), ElementsAre(15));
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

// In f16, the largest number is 65504.
TEST(FoldBatchNormTest, WeightsThatWouldOverflowStay) {
  struct Case {
    double weight, bias, factor;
    bool folds;
  };
  for (const Case& c :
       {Case{300, 0, 200, true}, Case{300, 0, 300, false}, Case{-300, 0, 300, false},
        Case{1, 300, 200, true}, Case{1, 300, 300, false}, Case{6e4, 6e4, 1, true}}) {
    Net net;
    const ValueId conv =
        net.Apply("Conv", {net.Input({1, 1, 2, 2}, ir::DType::kF16),
                           net.Weights({2, 1, 1, 1}, {1, c.weight}, ir::DType::kF16),
                           net.Weights({2}, {c.bias, 0}, ir::DType::kF16)});
    net.graph.outputs = {
        net.Apply("Mul", {conv, net.Weights({1, 2, 1, 1}, {c.factor, c.factor}, ir::DType::kF16)})};
    EXPECT_EQ(Changes(FoldBatchNorm, net.graph), c.folds) << c.weight << " " << c.bias;
  }
}

// The weights of f32 are not read for a usual factor.
TEST(FoldBatchNormTest, ComputedWeightsStayComputed) {
  Net net;
  ValueId result = net.Apply("Conv", {net.Input({1, 1, 2, 2}), net.Weights({1, 1, 1, 1}, {3})});
  bool read = false;
  const ValueId weights = net.graph.nodes[0].inputs[1];
  net.graph.values[weights].constant =
      ConstantData::Computed(DigestBuilder().Add("weights").Finish(), 4,
                             [&read, old = *net.graph.value(weights).constant] {
                               read = true;
                               return std::string(old.bytes());
                             });
  for (const double factor : {2.0, 1e6}) {
    result = net.Apply("Mul", {result, net.Weights({}, {factor})});
  }
  net.graph.outputs = {result};
  EXPECT_TRUE(Changes(FoldBatchNorm, net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("Conv"));
  EXPECT_FALSE(read);
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[0].inputs[1]), ElementsAre(6e6));
}

// 1 / sqrt(variance + epsilon) is 2^13 here.
TEST(FoldBatchNormTest, TinyVariancesMayOverflow) {
  for (const double weight : {4.0, 16.0}) {
    Net net;
    const auto halves = [&](std::vector<double> elements) {
      return net.Weights({1}, std::move(elements), ir::DType::kF16);
    };
    const ValueId conv = net.Apply("Conv", {net.Input({1, 1, 2, 2}, ir::DType::kF16),
                                            net.Weights({1, 1, 1, 1}, {weight}, ir::DType::kF16)});
    net.graph.outputs = {net.Apply("BatchNormalization",
                                   {conv, halves({1}), halves({0}), halves({0}), halves({0})},
                                   {{"epsilon", std::ldexp(1.0, -26)}})};
    EXPECT_EQ(Changes(FoldBatchNorm, net.graph), weight < 8) << weight;
  }
}

// A refused fold leaves a MatMul with its bias and the factor after it.
TEST(FoldBatchNormTest, ProductsWhoseWeightsWouldOverflowStay) {
  Net net;
  const ValueId p = net.Apply("MatMul", {net.Input({2, 1}, ir::DType::kF16),
                                         net.Weights({1, 2}, {1, 2e3}, ir::DType::kF16)});
  const ValueId s = net.Apply("Add", {p, net.Weights({2}, {1, 2}, ir::DType::kF16)});
  net.graph.outputs = {net.Apply("Mul", {s, net.Weights({2}, {1e2, 1e2}, ir::DType::kF16)})};
  EXPECT_FALSE(Changes(FoldBatchNorm, net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("MatMul", "Add", "Mul"));
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

TEST_F(FoldPaddingTest, PlacesOfMaximaStay) {
  const double infinity = std::numeric_limits<double>::infinity();
  const ValueId padded = Pad({0, 0, 1, 0, 0, 0, 1, 0}, {-infinity});
  const absl::Status added = net_.graph.AddNode(
      {"pool", "MaxPool", {padded}, {}, {{"kernel_shape", Ints{2, 2}}}}, {"most", "places"});
  ASSERT_THAT(added, IsOk());
  EXPECT_THAT(OperatorsAfter(net_.graph.nodes.back().outputs[1]), ElementsAre("Pad", "MaxPool"));
}

TEST_F(FoldPaddingTest, KernelsMayBeThePaddedImage) {
  const ValueId padded = Pad({0, 0, 1, 0, 0, 0, 1, 0});
  EXPECT_THAT(OperatorsAfter(net_.Apply("Conv", {padded, padded})), ElementsAre("Pad", "Conv"));
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

// A convolution of dequantized tensors with weights of 1 and 2 and a bias of i32.
ValueId QuantizedConv(Net& net, ValueId x) {
  const ValueId w =
      net.Apply("DequantizeLinear", {net.Bytes({2, 1, 1}, {1, 2}), net.Weights({2}, {0.5, 0.25})},
                {{"axis", int64_t{0}}});
  const ValueId bias =
      net.Apply("DequantizeLinear",
                {net.Bytes({2}, {8, -8}, ir::DType::kI32), net.Weights({2}, {0.125, 0.125})},
                {{"axis", int64_t{0}}});
  return net.Apply("Conv", {x, w, bias});
}

TEST(UseUnsignedBytesTest, ShiftsTheZeroPoint) {
  Net net;
  const ValueId step = net.Weights({}, {0.5}), zero = net.Bytes({}, {-3});
  const ValueId bytes = net.Apply("QuantizeLinear", {net.Input({3}), step, zero});
  net.graph.outputs = {net.Apply("DequantizeLinear", {bytes, step, zero}),
                       net.Apply("DequantizeLinear", {bytes, step, zero})};
  const std::vector<ir::Scalars> input = {{-100.0, 0.5, 100.0}};
  const auto expected = Interpret(net.graph, input);
  EXPECT_TRUE(Changes(UseUnsignedBytes, net.graph));
  EXPECT_EQ(net.graph.value(bytes).type.dtype, ir::DType::kU8);
  EXPECT_THAT(Reals(net.graph, net.graph.nodes[0].inputs[2]), ElementsAre(125));
  EXPECT_EQ(*Interpret(net.graph, input), *expected);
  EXPECT_FALSE(Changes(UseUnsignedBytes, net.graph));
}

TEST(UseUnsignedBytesTest, KeepsBytesThatTheNetworkReturns) {
  Net net;
  net.graph.outputs = {
      net.Apply("QuantizeLinear", {net.Input({3}), net.Weights({}, {0.5}), net.Bytes({}, {0})})};
  EXPECT_FALSE(Changes(UseUnsignedBytes, net.graph));
}

TEST(UseIntegerProductsTest, ConvolvesBytesAndScalesTheSums) {
  Net net;
  const ValueId y = QuantizedConv(net, net.Quantized(net.Input({1, 1, 3}), 0.5, 2));
  net.graph.outputs = {net.Quantized(net.Apply("Relu", {y}), 0.5, 0)};
  const std::vector<ir::Scalars> input = {{-1.0, 0.5, 3.0}};
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, Interpret(net.graph, input));
  EXPECT_EQ(expected[0], ir::Scalars({0.5, 1.0, 2.5, 0.0, 0.0, 0.5}));
  ASSERT_THAT(Optimize(net.graph), IsOk());
  EXPECT_THAT(net.Operators(), ElementsAre("QuantizeLinear", "ConvInteger", "Add", "Cast", "Mul",
                                           "Add", "Relu", "QuantizeLinear", "DequantizeLinear"));
  EXPECT_EQ(*Interpret(net.graph, input), expected);
}

TEST(UseIntegerProductsTest, TransposesConstantWeights) {
  Net net;
  const ValueId w = net.Apply("DequantizeLinear",
                              {net.Bytes({2, 3}, {1, 2, 3, 4, 5, 6}), net.Weights({}, {0.5})});
  net.graph.outputs = {
      net.Apply("Gemm", {net.Quantized(net.Input({1, 3}), 0.5, 2), w}, {{"transB", int64_t{1}}})};
  const std::vector<ir::Scalars> input = {{-1.0, 0.5, 3.0}};
  const auto expected = Interpret(net.graph, input);
  EXPECT_TRUE(Changes(UseIntegerProducts, net.graph));
  EXPECT_TRUE(Changes(RemoveDead, net.graph));
  EXPECT_THAT(net.Operators(),
              ElementsAre("QuantizeLinear", "MatMulInteger", "Add", "Cast", "Mul"));
  EXPECT_EQ(*Interpret(net.graph, input), *expected);
}

TEST(UseIntegerProductsTest, KeepsProductsWhoseSumsCouldWrap) {
  const auto changes = [](int64_t inner) {
    Net net;
    const ValueId w =
        net.Apply("DequantizeLinear",
                  {net.Bytes({inner, 1}, std::vector<int64_t>(inner, 1)), net.Weights({}, {0.5})});
    net.graph.outputs = {net.Apply("MatMul", {net.Quantized(net.Input({1, inner}), 0.5, 2), w})};
    return Changes(UseIntegerProducts, net.graph);
  };
  EXPECT_TRUE(changes(16000));
  EXPECT_FALSE(changes(17000));
}

TEST(UseIntegerProductsTest, KeepsScalesThatDifferAlongTheReduction) {
  Net net;
  const ValueId w = net.Apply("DequantizeLinear",
                              {net.Bytes({2, 2}, {1, 2, 3, 4}), net.Weights({2}, {0.5, 0.25})},
                              {{"axis", int64_t{0}}});
  net.graph.outputs = {net.Apply("MatMul", {net.Quantized(net.Input({1, 2}), 0.5, 2), w})};
  EXPECT_FALSE(Changes(UseIntegerProducts, net.graph));
}

TEST(SkipDequantizationTest, MovesBytes) {
  Net net;
  const ValueId x = net.Quantized(net.Input({2, 3}), 0.5, 2);
  net.graph.outputs = {net.Quantized(net.Apply("Transpose", {x}), 0.5, 2)};
  EXPECT_TRUE(Changes(SkipDequantization, net.graph));
  EXPECT_TRUE(Changes(RemoveDead, net.graph));
  EXPECT_THAT(net.Operators(), ElementsAre("QuantizeLinear", "Transpose", "DequantizeLinear"));
}

TEST(SkipDequantizationTest, KeepsAChangeOfScale) {
  for (const auto& [scale, zero_point] : {std::pair(0.25, 2), std::pair(0.5, 3)}) {
    Net net;
    net.graph.outputs = {
        net.Quantized(net.Quantized(net.Input({2, 3}), 0.5, 2), scale, zero_point)};
    EXPECT_FALSE(Changes(SkipDequantization, net.graph));
  }
}

TEST(OptimizeTest, PassesHelpEachOther) {
  Net net;
  const ValueId x = net.Input({2, 3});
  const ValueId a = net.Apply("Transpose", {net.Apply("Transpose", {x})});
  const ValueId b =
      net.Apply("Reshape", {net.Apply("Reshape", {x, net.Ints({6})}), net.Ints({2, 3})});
  const ValueId zero = net.Apply("Sub", {net.Weights({}), net.Weights({})});
  net.graph.outputs = {net.Apply("Add", {net.Apply("Mul", {a, b}), zero})};
  ASSERT_THAT(Optimize(net.graph), IsOk());
  EXPECT_THAT(net.Operators(), ElementsAre("Mul", "Add"));
}

}  // namespace
}  // namespace hone::graph
