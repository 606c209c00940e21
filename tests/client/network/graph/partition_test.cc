#include "client/network/graph/partition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/graph/group.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "tests/client/network/graph/net.h"
#include "tests/client/network/graph/random_graph.h"
#include "tests/client/network/graph/run_steps.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::DType;
using ir::Scalars;
using testing::ElementsAre;
using testing::HasSubstr;

// The names of the tasks, one per step, in the order of the steps; "alias" for aliases.
std::vector<std::string> StepsOf(const Graph& graph, const PartitionOptions& options = {}) {
  const auto partition = MakePartition(graph, options);
  EXPECT_THAT(partition, IsOk());
  if (!partition.ok()) return {};
  std::vector<std::string> names;
  for (const Step& step : partition->steps) {
    names.push_back(step.kind == Step::Kind::kAlias ? "alias"
                                                    : partition->tasks[step.task].workload.name);
  }
  return names;
}

std::string Describe(const Graph& graph, const Partition& partition) {
  std::string text = graph.ToText();
  for (const Step& step : partition.steps) {
    absl::StrAppend(&text, "step ", absl::StrJoin(step.nodes, " "), " task ", step.task, ": ",
                    absl::StrJoin(step.inputs, " "), " -> ", absl::StrJoin(step.outputs, " "),
                    "\n");
  }
  for (const Task& task : partition.tasks) {
    absl::StrAppend(&text, task.weight, " x ", task.workload.ToText());
  }
  return text;
}

TEST(PartitionTest, RandomGraphsComputeTheSame) {
  for (uint64_t seed = 0; seed < 400; ++seed) {
    RandomGraph random(seed, DType::kF32);
    const Graph graph = random.Draw(2 + static_cast<int>(seed % 12));
    if (graph.nodes.empty()) continue;
    ASSERT_THAT(graph.Verify(), IsOk());
    const auto partition = MakePartition(graph, {.max_nodes = seed % 3 == 0 ? 3 : 32});
    ASSERT_THAT(partition, IsOk()) << "\nseed " << seed << "\n" << graph.ToText();
    const std::string text = Describe(graph, *partition);
    SCOPED_TRACE(absl::StrCat("seed ", seed, "\n", text));
    std::set<int> nodes;
    for (const Step& step : partition->steps) {
      for (const int n : step.nodes) EXPECT_TRUE(nodes.insert(n).second) << "node twice: " << n;
    }
    EXPECT_EQ(nodes.size(), graph.nodes.size());
    const std::vector<Scalars> inputs = random.DrawInputs(graph);
    HONE_ASSERT_OK_AND_ASSIGN(const auto expected, Interpret(graph, inputs));
    HONE_ASSERT_OK_AND_ASSIGN(const auto actual, RunSteps(graph, *partition, inputs));
    EXPECT_EQ(Difference(expected, actual), "");
    const auto again = MakePartition(graph, {.max_nodes = seed % 3 == 0 ? 3 : 32});
    EXPECT_EQ(Describe(graph, *again), text);
  }
}

TEST(PartitionTest, ElementwiseNodesFollowTheirProduct) {
  Net net;
  const ValueId x = net.Input({4, 8});
  const ValueId y = net.Apply("Add", {net.Apply("MatMul", {x, net.Weights({8, 8})}), x});
  net.graph.outputs = {net.Apply("Relu", {y})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("matmul_add_relu"));
  EXPECT_THAT(StepsOf(net.graph, {.fuse = false}), ElementsAre("matmul", "add", "relu"));
  EXPECT_THAT(StepsOf(net.graph, {.max_nodes = 2}), ElementsAre("matmul_add", "relu"));
}

TEST(PartitionTest, ValuesWithSeveralReadersEndAGroup) {
  Net net;
  const ValueId x = net.Input({4, 8});
  const ValueId p = net.Apply("MatMul", {x, net.Weights({8, 8})});
  const ValueId r = net.Apply("Relu", {p});
  const ValueId q = net.Apply("MatMul", {r, net.Weights({8, 8})});
  net.graph.outputs = {net.Apply("Add", {q, r})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("matmul_relu", "matmul_add"));
  net.graph.outputs.push_back(p);
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("matmul", "relu", "matmul_add"));
}

// The last product takes the sum, so that the other operand is known.
TEST(PartitionTest, ASumOfTwoProductsBelongsToTheLast) {
  Net net;
  const ValueId x = net.Input({4, 8});
  const ValueId a = net.Apply("MatMul", {x, net.Weights({8, 8})});
  const ValueId b = net.Apply("MatMul", {x, net.Weights({8, 8})});
  net.graph.outputs = {net.Apply("Add", {a, b})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("matmul", "matmul_add"));
}

TEST(PartitionTest, ResultsAreNotBroadcastInTheirGroup) {
  Net net;
  const ValueId p = net.Apply("MatMul", {net.Input({1, 8}), net.Weights({8, 8})});
  net.graph.outputs = {net.Apply("Add", {p, net.Weights({4, 8})})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("matmul", "add"));
}

TEST(PartitionTest, EqualWorkloadsShareATask) {
  Net net;
  ValueId x = net.Input({4, 8});
  for (int i = 0; i < 3; ++i) {
    x = net.Apply("Relu", {net.Apply("MatMul", {x, net.Weights({8, 8})})});
  }
  net.graph.outputs = {net.Apply("MatMul", {x, net.Weights({8, 2})})};
  HONE_ASSERT_OK_AND_ASSIGN(const auto partition, MakePartition(net.graph));
  ASSERT_EQ(partition.tasks.size(), 2u);
  EXPECT_EQ(partition.tasks[0].weight, 3);
  EXPECT_THAT(partition.tasks[0].steps, ElementsAre(0, 1, 2));
  EXPECT_EQ(partition.tasks[0].flops, 2.0 * 4 * 8 * 8 + 4 * 8);
  EXPECT_EQ(partition.tasks[1].weight, 1);
}

TEST(PartitionTest, GroupsTooLargeForAWorkloadAreDivided) {
  Net net;
  ValueId x = net.Input({4});
  for (int i = 0; i < 300; ++i) x = net.Apply("Add", {x, net.Weights({4})});
  net.graph.outputs = {x};
  HONE_ASSERT_OK_AND_ASSIGN(const auto partition, MakePartition(net.graph, {.max_nodes = 1000}));
  EXPECT_EQ(partition.steps.size(), 4u);
  EXPECT_EQ(partition.tasks.size(), 1u);
}

TEST(PartitionTest, ConvolutionsTakeResidualsAndActivations) {
  Net net;
  const ValueId x = net.Conv(net.Input({1, 4, 4, 4}), 4);
  const ValueId y = net.Apply("Relu", {net.Apply("Add", {net.Conv(x, 4, 3), x})});
  const ValueId z = net.Conv(y, 4);
  net.graph.outputs = {net.Apply("Mul", {net.Apply("Sigmoid", {z}), z})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("conv2d", "conv2d_add_relu", "conv2d_swish"));
}

TEST(PartitionTest, GeluFollowsItsProduct) {
  Net net;
  const ValueId p = net.Apply("MatMul", {net.Input({4, 8}), net.Weights({8, 8})});
  const ValueId x = net.Apply("Add", {p, net.Weights({8})});
  const ValueId erf = net.Apply("Erf", {net.Apply("Div", {x, net.Weights({}, {1.4142135})})});
  const ValueId y = net.Apply("Mul", {x, net.Apply("Add", {erf, net.Weights({}, {1})})});
  net.graph.outputs = {net.Apply("Mul", {y, net.Weights({}, {0.5})})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("matmul_add_gelu"));
}

// The gate of a squeeze-and-excitation block depends on what it scales.
TEST(PartitionTest, AResultThatItsEpilogueWaitsForEndsTheGroup) {
  Net net;
  const ValueId x = net.Apply("Relu", {net.Conv(net.Input({1, 4, 4, 4}), 4)});
  const ValueId gate = net.Conv(net.Apply("GlobalAveragePool", {x}), 4);
  net.graph.outputs = {net.Apply("Mul", {x, net.Apply("Sigmoid", {gate})})};
  EXPECT_THAT(StepsOf(net.graph),
              ElementsAre("conv2d_relu", "global_average_pool", "conv2d_sigmoid", "mul"));
}

TEST(PartitionTest, ALayerNormIsOneGroup) {
  Net net;
  const ValueId x = net.Apply(
      "Add", {net.Apply("MatMul", {net.Input({4, 8}), net.Weights({8, 8})}), net.Weights({8})});
  const ValueId d = net.Apply("Sub", {x, net.Apply("ReduceMean", {x, net.Ints({-1})})});
  const ValueId square = net.Apply("Pow", {d, net.Weights({}, {2})});
  const ValueId v = net.Apply("ReduceMean", {square, net.Ints({-1})});
  const ValueId s = net.Apply("Sqrt", {net.Apply("Add", {v, net.Weights({}, {1e-5})})});
  const ValueId y = net.Apply("Mul", {net.Apply("Div", {d, s}), net.Weights({8})});
  net.graph.outputs = {net.Apply("Add", {y, net.Weights({8})})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("matmul_add", "layer_norm"));
}

TEST(PartitionTest, AttentionIsOneGroup) {
  Net net;
  const auto heads = [&](std::vector<int64_t> permutation) {
    const ValueId p = net.Apply("MatMul", {net.graph.inputs[0], net.Weights({8, 8})});
    const ValueId split = net.Apply("Reshape", {p, net.Ints({1, 4, 2, 4})});
    return net.Apply("Transpose", {split}, {{"perm", std::move(permutation)}});
  };
  net.Input({1, 4, 8});
  const ValueId mask = net.Input({1, 1, 1, 4});
  const ValueId q = heads({0, 2, 1, 3}), k = heads({0, 2, 3, 1}), v = heads({0, 2, 1, 3});
  const ValueId scores = net.Apply("Div", {net.Apply("MatMul", {q, k}), net.Weights({}, {2})});
  const ValueId weights = net.Apply("Softmax", {net.Apply("Add", {scores, mask})});
  const ValueId y = net.Apply("Transpose", {net.Apply("MatMul", {weights, v})},
                              {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  const ValueId joined = net.Apply("Reshape", {y, net.Ints({1, 4, 8})});
  net.graph.outputs = {net.Apply("MatMul", {joined, net.Weights({8, 8})})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("matmul", "alias", "matmul", "alias", "matmul",
                                              "alias", "attention", "alias", "matmul"));
}

TEST(PartitionTest, TranspositionsFollowTheirProducer) {
  Net net;
  const ValueId y = net.Apply("Transpose", {net.Conv(net.Input({1, 4, 2, 3}), 4)},
                              {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  net.graph.outputs = {net.Apply("Add", {y, net.Weights({4})})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("conv2d_transpose_add"));
}

// An image with many channels is transposed before a depthwise convolution, which reads the
// channels as vectors. One with few channels is read in any order.
TEST(PartitionTest, AConvolutionTakesTheTranspositionOfAFewChannels) {
  for (const int64_t channels : {3, 64}) {
    Net net;
    const ValueId x = net.Apply("Transpose", {net.Input({1, channels, 8, 8})},
                                {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
    net.graph.outputs = {net.Apply("Conv", {x, net.Weights({1, 1, 1, channels})},
                                   {{"channels_last", int64_t{1}}, {"group", channels}})};
    if (channels == 3) {
      EXPECT_THAT(StepsOf(net.graph), ElementsAre("transpose_depthwise_conv2d"));
    } else {
      EXPECT_THAT(StepsOf(net.graph), ElementsAre("transpose", "depthwise_conv2d"));
    }
  }
}

TEST(PartitionTest, AConvolutionOfBytesTakesTheTranspositionOfAFewChannels) {
  Net net;
  const ValueId bytes = net.Input({1, 3, 8, 8}, ir::DType::kU8);
  const ValueId x = net.Apply("Transpose", {bytes}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  net.graph.outputs = {net.Apply("ConvInteger", {x, net.Bytes({1, 1, 3, 2}, {1, 2, 3, 4, 5, 6})},
                                 {{"channels_last", int64_t{1}}})};
  EXPECT_EQ(StepsOf(net.graph).size(), 1);
}

TEST(PartitionTest, ReshapesThatOutputAnInputAreCopies) {
  Net net;
  const ValueId x = net.Input({4, 8});
  const ValueId y = net.Apply("Relu", {x});
  net.graph.outputs = {net.Apply("Reshape", {x, net.Ints({32})}),
                       net.Apply("Reshape", {y, net.Ints({32})})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("relu", "reshape", "alias"));
  net.graph.outputs.push_back(y);
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("relu", "reshape", "reshape"));
}

TEST(PartitionTest, ChannelsOfOneSampleAreJoinedAndCutWithoutACopy) {
  for (const int64_t samples : {1, 2}) {
    Net net;
    const ValueId x = net.Input({samples, 4, 4, 4});
    const ValueId joined =
        net.Apply("Concat", {net.Conv(x, 4), net.Conv(x, 8)}, {{"axis", int64_t{1}}});
    const ValueId cut = net.Apply("Slice", {joined, net.Ints({2}), net.Ints({6}), net.Ints({1})});
    net.graph.outputs = {net.Conv(joined, 2), net.Conv(cut, 2)};
    if (samples == 1) {
      EXPECT_THAT(StepsOf(net.graph),
                  ElementsAre("conv2d", "conv2d", "alias", "alias", "conv2d", "conv2d"));
    } else {
      EXPECT_THAT(StepsOf(net.graph),
                  ElementsAre("conv2d", "conv2d", "concat", "slice", "conv2d", "conv2d"));
    }
  }
}

TEST(PartitionTest, CopiesTakeElementwiseNodes) {
  Net net;
  const ValueId x = net.Input({4, 4});
  const ValueId y = net.Apply("Concat", {x, net.Apply("Abs", {x})}, {{"axis", int64_t{1}}});
  net.graph.outputs = {net.Apply("Relu", {y})};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("abs", "concat_relu"));
}

TEST(PartitionTest, ConversionsToAWiderTypeBelongToTheirReader) {
  Net net;
  const auto convert = [&](ValueId x, int64_t type) {
    return net.Apply("Cast", {x}, {{"to", type}});
  };
  constexpr int64_t kF32 = 1, kF16 = 10;
  const ValueId x = convert(net.Input({1, 4, 4, 4}), kF16);
  const ValueId y = convert(net.Conv(convert(x, kF32), 4), kF16);
  net.graph.outputs = {convert(y, kF32)};
  EXPECT_THAT(StepsOf(net.graph), ElementsAre("cast", "cast_conv2d_cast", "cast"));
}

TEST(PartitionTest, ASumOfDequantizedTensorsIsQuantizedAtOnce) {
  Net net;
  const auto dequantized = [&] {
    return net.Apply("DequantizeLinear",
                     {net.Apply("Cast", {net.Input({2})}, {{"to", int64_t{2}}}), net.Weights({})});
  };
  const ValueId sum = net.Apply("Add", {dequantized(), dequantized()});
  net.graph.outputs = {net.Apply("QuantizeLinear", {sum, net.Weights({})})};
  EXPECT_THAT(
      StepsOf(net.graph),
      ElementsAre("cast", "cast", "dequantize_linear_dequantize_linear_add_quantize_linear"));
}

// A workload can look up its inputs only, so what computes the table is another kernel.
TEST(PartitionTest, LookUpsAreNotFusedWithWhatComputesTheirTable) {
  for (const char* const producer : {"Relu", "Softmax", "Transpose"}) {
    Net net;
    const ValueId table = net.Apply(producer, {net.Input({8, 8})});
    const ValueId rows = net.Apply("Gather", {table, net.Ints({3, 1, 4})});
    const ValueId sum = net.Apply("Add", {rows, net.Weights({3, 8})});
    net.graph.outputs = {net.Apply("Abs", {sum})};
    const auto partition = MakePartition(net.graph);
    ASSERT_THAT(partition, IsOk()) << producer;
    ASSERT_EQ(partition->steps.size(), 2u) << producer;
    EXPECT_EQ(partition->steps[0].nodes, std::vector<int>({0})) << producer;
    EXPECT_EQ(partition->steps[1].nodes, std::vector<int>({1, 2, 3})) << producer;
  }
}

TEST(PartitionTest, NodesThatNothingReadsAreRefused) {
  Net net;
  const ValueId x = net.Input({4});
  net.graph.outputs = {net.Apply("Relu", {x})};
  net.Apply("Abs", {x});
  EXPECT_THAT(MakePartition(net.graph).status().message(),
              HasSubstr("(Abs): nothing reads its result"));
}

}  // namespace
}  // namespace hone::graph
