#include "client/network/runner.h"

#include <algorithm>

#include "common/graph/node_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/test_network.h"

namespace hone::network {
namespace {

using ::testing::HasSubstr;

std::vector<absl::string_view> Views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

// Runs the network in this process and compares its outputs with those of the interpreter.
void ExpectRight(const TestNetwork& network, int threads = 2) {
  const auto runner = Runner::Create(network.graph, network.partition, network.kernels, threads);
  ASSERT_TRUE(runner.ok()) << runner.status();
  for (int seed = 0; seed < 2; ++seed) {
    const std::vector<std::string> inputs = MakeInputs(network.graph, seed);
    const auto outputs = (*runner)->Run(Views(inputs));
    ASSERT_TRUE(outputs.ok()) << outputs.status();
    EXPECT_EQ(*outputs, Expected(network.graph, inputs));
  }
}

TEST(RunnerTest, ComputesWhatTheGraphMeans) {
  ExpectRight(Compile(Residual(), {.fuse = true}));
  ExpectRight(Compile(Residual(), {.fuse = false}));
  ExpectRight(Compile(Residual(), {.fuse = true}), /*threads=*/1);
}

TEST(RunnerTest, PacksConstants) {
  for (const bool fuse : {false, true}) {
    const TestNetwork network = Compile(Residual(), {.fuse = fuse, .pack = true});
    EXPECT_TRUE(std::any_of(network.kernels.begin(), network.kernels.end(), [](const auto& kernel) {
      return kernel.loaded->library().packed_bytes() > 0;
    }));
    ExpectRight(network);
  }
}

// An output of the network may be one of its inputs, a constant, or appear twice.
TEST(RunnerTest, CopiesOutputsThatNoKernelWrites) {
  graph::Graph graph = Residual();
  const graph::ValueId w1 = 1;
  graph.outputs = {graph.outputs[0], graph.inputs[0], graph.outputs[0], w1};
  ExpectRight(Compile(graph));
}

// x is split into halves, of which one is changed; they are joined again and reshaped.
graph::Graph Aliases() {
  graph::Graph graph;
  const graph::ValueId x = graph.AddValue("x", {ir::DType::kF32, {4, 16}});
  graph.inputs = {x};
  EXPECT_TRUE(
      graph.AddNode({"split", "Split", {x}, {}, {{"num_outputs", int64_t{2}}}}, {"a", "b"}).ok());
  const graph::ValueId a = graph.nodes[0].outputs[0], b = graph.nodes[0].outputs[1];
  const graph::ValueId w = AddWeights(graph, "w", {2, 16});
  const graph::ValueId more = AddNode(graph, "Mul", {a, w}), less = AddNode(graph, "Add", {b, w});
  const graph::ValueId both = AddNode(graph, "Concat", {more, less}, {{"axis", int64_t{0}}});
  const graph::TensorType shape{ir::DType::kI64, {2}};
  const graph::ValueId extents = graph.AddConstant(
      "extents", shape, graph::ConstantData(graph::Encode(shape, {int64_t{8}, int64_t{8}})));
  graph.outputs = {AddNode(graph, "Reshape", {both, extents})};
  return graph;
}

TEST(RunnerTest, AliasesTakeNoKernel) {
  const TestNetwork network = Compile(Aliases());
  EXPECT_EQ(network.kernels.size(), 2u);  // Mul and Add
  ExpectRight(network);
}

TEST(RunnerTest, TellsTheTimeOfEachStep) {
  const TestNetwork network = Compile(Residual(), {.fuse = false});
  const auto runner = Runner::Create(network.graph, network.partition, network.kernels);
  ASSERT_TRUE(runner.ok()) << runner.status();
  const std::vector<std::string> inputs = MakeInputs(network.graph);
  std::vector<StepTime> times;
  ASSERT_TRUE((*runner)->Run(Views(inputs), &times).ok());
  ASSERT_EQ(times.size(), 5u);
  EXPECT_EQ(times[0].name, "n0");
  EXPECT_EQ(times[0].kernel, network.partition.tasks[0].workload.name);
  EXPECT_GE(times[0].ns, 0);
}

TEST(RunnerTest, RefusesWrongInputs) {
  const TestNetwork network = Compile(Residual());
  const auto runner = Runner::Create(network.graph, network.partition, network.kernels);
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_THAT(std::string((*runner)->Run({}).status().message()),
              HasSubstr("the network has 1 inputs, not 0"));
  EXPECT_THAT(std::string((*runner)->Run({"short"}).status().message()),
              HasSubstr("input 0 has 128 bytes, not 5"));
}

TEST(RunnerTest, NeedsAKernelForEachTask) {
  TestNetwork network = Compile(Residual());
  network.kernels.pop_back();
  const auto status = Runner::Create(network.graph, network.partition, network.kernels).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
}

}  // namespace
}  // namespace hone::network
