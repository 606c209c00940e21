#include "client/network/graph/graph.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/network/graph/group.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/operator_def.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ir::DType;
using ir::Scalars;

ValueId AddFloats(Graph& graph, std::string name, std::vector<int64_t> shape,
                  const Scalars& elements) {
  const TensorType type{DType::kF32, std::move(shape)};
  return graph.AddConstant(std::move(name), type, ConstantData(Encode(type, elements)));
}

// y = max(x * w + b, 0) with a scalar b.
Graph Dense() {
  Graph graph;
  graph.name = "dense";
  graph.inputs = {graph.AddValue("x", {DType::kF32, {2, 3}})};
  const ValueId w = AddFloats(graph, "w", {3, 2}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0});
  const ValueId b = AddFloats(graph, "b", {}, {-20.0});
  EXPECT_THAT(graph.AddNode({"m", "MatMul", {0, w}, {}, {}}, {"p"}), IsOk());
  EXPECT_THAT(graph.AddNode({"a", "Add", {3, b}, {}, {}}, {"s"}), IsOk());
  EXPECT_THAT(graph.AddNode({"r", "Relu", {4}, {}, {}}, {"y"}), IsOk());
  graph.outputs = {5};
  return graph;
}

TEST(GraphTest, Text) {
  const Graph graph = Dense();
  EXPECT_EQ(graph.ToText(),
            "graph dense\ninput x: f32[2, 3]\nconstant w: f32[3, 2]\nconstant b: f32[]\n"
            "m: p: f32[2, 2] = MatMul(x, w)\na: s: f32[2, 2] = Add(p, b)\n"
            "r: y: f32[2, 2] = Relu(s)\noutput y\n");
  EXPECT_THAT(graph.Verify(), IsOk());
}

TEST(GraphTest, Interprets) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs,
                            Interpret(Dense(), {{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}}));
  EXPECT_EQ(outputs[0], Scalars({2.0, 8.0, 29.0, 44.0}));
}

TEST(GraphTest, GroupIsOneWorkload) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto group, MakeGroup(Dense(), {0, 1, 2}, "dense"));
  EXPECT_EQ(group.workload.stages.size(), 3u);
  EXPECT_EQ(group.inputs, std::vector<ValueId>({0, 1, 2}));
  EXPECT_EQ(group.outputs, std::vector<ValueId>({5}));
  const std::vector<Scalars> inputs = {
      {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}, {-20.0}};
  HONE_ASSERT_OK_AND_ASSIGN(const auto results, ir::Interpret(group.workload, inputs));
  EXPECT_EQ(results[0], Scalars({2.0, 8.0, 29.0, 44.0}));
}

TEST(GraphTest, FoldsConstants) {
  Graph graph;
  const ValueId a = AddFloats(graph, "a", {2}, {1.0, -2.0});
  ASSERT_THAT(graph.AddNode({"n", "Relu", {a}, {}, {}}, {"y"}), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto folded, Fold(graph, graph.nodes[0]));
  EXPECT_EQ(Decode({DType::kF32, {2}}, folded[0].bytes()), Scalars({1.0, 0.0}));
}

TEST(GraphTest, FoldsWhatTypesDetermine) {
  Graph graph;
  graph.inputs = {graph.AddValue("x", {DType::kF32, {2, 3}})};
  ASSERT_THAT(graph.AddNode({"n", "Shape", {0}, {}, {}}, {"y"}), IsOk());
  ASSERT_THAT(graph.AddNode({"m", "Relu", {0}, {}, {}}, {"z"}), IsOk());
  ASSERT_THAT(graph.AddNode({"e", "EyeLike", {0}, {}, {}}, {"w"}), IsOk());
  EXPECT_TRUE(CanFold(graph, graph.nodes[0]));
  EXPECT_FALSE(CanFold(graph, graph.nodes[1]));
  HONE_ASSERT_OK_AND_ASSIGN(const auto shape, Fold(graph, graph.nodes[0]));
  EXPECT_EQ(Decode({DType::kI64, {2}}, shape[0].bytes()), Scalars({2, 3}));
  HONE_ASSERT_OK_AND_ASSIGN(const auto eye, Fold(graph, graph.nodes[2]));
  EXPECT_EQ(Decode({DType::kF32, {2, 3}}, eye[0].bytes()), Scalars({1., 0., 0., 0., 1., 0.}));
}

TEST(GraphTest, TensorsThatAreNotReadAreNotInputs) {
  Graph graph;
  graph.inputs = {graph.AddValue("x", {DType::kF32, {2, 3}})};
  const ValueId exponent = AddFloats(graph, "two", {}, {2.0});
  ASSERT_THAT(graph.AddNode({"n", "Pow", {0, exponent}, {}, {}}, {"y"}), IsOk());
  graph.outputs = {2};
  HONE_ASSERT_OK_AND_ASSIGN(const auto group, MakeGroup(graph, {0}, "square"));
  EXPECT_EQ(group.inputs, std::vector<ValueId>({0}));
}

TEST(GraphTest, ErrorsNameNodesAndTensors) {
  GoldenOfTest golden;
  Graph graph = Dense();
  golden.Add(graph.AddNode({"n", "Add", {0, 1}, {}, {}}, {"z"}).message());
  golden.Add(graph.AddNode({"n", "Fly", {0}, {}, {}}, {"z"}).message());
  golden.Add(graph.AddNode({"n", "Add", {0}, {}, {}}, {"z"}).message());
  std::swap(graph.nodes[0], graph.nodes[1]);
  golden.Add(graph.Verify().message());
  std::swap(graph.nodes[0], graph.nodes[1]);
  graph.values[3].type.shape = {2, 3};
  golden.Add(graph.Verify().message());
}

}  // namespace
}  // namespace hone::graph
