// Models of old opsets compute the same as before.
#include "client/network/onnx/opset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/operator_def.h"
#include "client/network/onnx/import.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/golden.h"
#include "tests/status.h"

namespace hone::onnx {
namespace {

using ir::Scalars;

constexpr int kFloatTensor = 1;

// One node with the input x (and w, if `more` has it) and the output y.
absl::StatusOr<graph::Graph> ImportNode(int opset, const std::string& shape,
                                        const std::string& node, const std::string& more = "") {
  return ImportOnnxBytes(
      BytesOf(Input("x", kFloatTensor, shape) + more + node + Output("y"), opset), "");
}

struct Case {
  int opset;
  std::string shape;
  std::string node;
  Scalars x, y;  // elements of the input and the output
  std::vector<int64_t> y_shape;
  std::string more;
};

class OpsetTest : public testing::TestWithParam<Case> {};

TEST_P(OpsetTest, Computes) {
  const Case& c = GetParam();
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, ImportNode(c.opset, c.shape, c.node, c.more));
  EXPECT_EQ(graph.value(graph.outputs[0]).type.shape, c.y_shape);
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {c.x}));
  ASSERT_EQ(outputs[0].size(), c.y.size());
  for (size_t i = 0; i < c.y.size(); ++i) {
    EXPECT_NEAR(outputs[0][i].real(), c.y[i].real(), 1e-6) << i;
  }
}

const Case kCases[] = {
    {7,
     "3",
     NodeText("Clip", "x", "y", Float("min", 0) + Float("max", 6)),
     {-1.0, 3.0, 7.0},
     {0.0, 3.0, 6.0},
     {3}},
    {10, "2", NodeText("Clip", "x", "y", Float("max", 6)), {-1.0, 7.0}, {-1.0, 6.0}, {2}},
    {10,
     "2",
     NodeText("Pad", "x", "y", Ints("pads", "1, 2") + Float("value", 9)),
     {1.0, 2.0},
     {9.0, 1.0, 2.0, 9.0, 9.0},
     {5}},
    {9,
     "2, 3",
     NodeText("Slice", "x", "y", Ints("starts", "1") + Ints("ends", "3") + Ints("axes", "1")),
     {0.0, 1.0, 2.0, 3.0, 4.0, 5.0},
     {1.0, 2.0, 4.0, 5.0},
     {2, 2}},
    {9,
     "2, 2",
     NodeText("Slice", "x", "y", Ints("starts", "1, 0") + Ints("ends", "2, 9")),
     {0.0, 1.0, 2.0, 3.0},
     {2.0, 3.0},
     {1, 2}},
    {12,
     "1, 2, 1",
     NodeText("Squeeze", "x", "y", Ints("axes", "0")),
     {1.0, 2.0},
     {1.0, 2.0},
     {2, 1}},
    {12, "1, 2, 1", NodeText("Squeeze", "x", "y"), {1.0, 2.0}, {1.0, 2.0}, {2}},
    {12, "2", NodeText("Unsqueeze", "x", "y", Ints("axes", "0")), {1.0, 2.0}, {1.0, 2.0}, {1, 2}},
    {12, "3", NodeText("Split", "x", "y z", Ints("split", "1, 2")), {1.0, 2.0, 3.0}, {1.0}, {1}},
    {12, "4", NodeText("Split", "x", "y z"), {1.0, 2.0, 3.0, 4.0}, {1.0, 2.0}, {2}},
    {13, "4", NodeText("Split", "x", "y z"), {1.0, 2.0, 3.0, 4.0}, {1.0, 2.0}, {2}},
    // The second output is not wanted.
    {13, "4", NodeText("Split", "x", "y "), {1.0, 2.0, 3.0, 4.0}, {1.0, 2.0}, {2}},
    {12,
     "2, 2",
     NodeText("ReduceSum", "x", "y", Ints("axes", "0") + Int("keepdims", 0)),
     {1.0, 2.0, 3.0, 4.0},
     {4.0, 6.0},
     {2}},
    {17,
     "2, 2",
     NodeText("ReduceMax", "x", "y", Ints("axes", "-1")),
     {1.0, 2.0, 4.0, 3.0},
     {2.0, 4.0},
     {2, 1}},
    {12,
     "2, 2",
     NodeText("ReduceMean", "x", "y", Int("keepdims", 0)),
     {1.0, 2.0, 4.0, 5.0},
     {3.0},
     {}},
    // All dimensions from the axis on, 1 by default.
    {12,
     "1, 2, 2",
     NodeText("Softmax", "x", "y"),
     {0.0, 0.0, 0.0, 0.0},
     {0.25, 0.25, 0.25, 0.25},
     {1, 2, 2}},
    {13,
     "1, 2, 2",
     NodeText("Softmax", "x", "y"),
     {0.0, 0.0, 0.0, 0.0},
     {0.5, 0.5, 0.5, 0.5},
     {1, 2, 2}},
    {12,
     "1, 2, 2",
     NodeText("Softmax", "x", "y", Int("axis", 2)),
     {0.0, 0.0, 0.0, 0.0},
     {0.5, 0.5, 0.5, 0.5},
     {1, 2, 2}},
    {12,
     "1, 2, 2",
     NodeText("Hardmax", "x", "y"),
     {0.0, 3.0, 1.0, 2.0},
     {0.0, 1.0, 0.0, 0.0},
     {1, 2, 2}},
    {12,
     "1, 2, 1",
     NodeText("LogSoftmax", "x", "y"),
     {0.0, 0.0},
     {-0.69314718, -0.69314718},
     {1, 2, 1}},
    {7,
     "1, 1, 1, 2",
     NodeText("Upsample", "x", "y", String("mode", "nearest") + Floats("scales", "1, 1, 2, 2")),
     {1.0, 2.0},
     {1.0, 1.0, 2.0, 2.0, 1.0, 1.0, 2.0, 2.0},
     {1, 1, 2, 4}},
    {9,
     "1, 1, 1, 2",
     NodeText("Upsample", "x s", "y"),
     {1.0, 2.0},
     {1.0, 1.0, 2.0, 2.0},
     {1, 1, 1, 4},
     Initializer("s", kFloatTensor, "4", "float_data: [1, 1, 1, 2]")},
    {10,
     "1, 1, 2, 4",
     NodeText("Resize", "x s", "y"),
     {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0},
     {1.0, 3.0},
     {1, 1, 1, 2},
     Initializer("s", kFloatTensor, "4", "float_data: [1, 1, 0.6, 0.6]")},
    {10,
     "1, 1, 2, 4",
     NodeText("Resize", "x s", "y"),
     {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0},
     {1.0, 3.0, 1.0, 3.0, 5.0, 7.0, 5.0, 7.0},
     {1, 1, 4, 2},
     Initializer("s", kFloatTensor, "4", "float_data: [1, 1, 2, 0.6]")},
    {7,
     "1, 1, 2",
     NodeText("BatchNormalization", "x one zero zero one", "y",
              Float("epsilon", 0) + Int("spatial", 1)),
     {1.0, 2.0},
     {1.0, 2.0},
     {1, 1, 2},
     Initializer("one", kFloatTensor, "1", "float_data: 1") +
         Initializer("zero", kFloatTensor, "1", "float_data: 0")},
    // The two channels of the only group have its scale and bias.
    {18,
     "1, 2, 1",
     NodeText("GroupNormalization", "x two three", "y", Int("num_groups", 1) + Float("epsilon", 0)),
     {-1.0, 1.0},
     {1.0, 5.0},
     {1, 2, 1},
     Initializer("two", kFloatTensor, "1", "float_data: 2") +
         Initializer("three", kFloatTensor, "1", "float_data: 3")},
    {21,
     "1, 2, 1",
     NodeText("GroupNormalization", "x two three", "y", Int("num_groups", 1) + Float("epsilon", 0)),
     {-1.0, 1.0},
     {1.0, 6.0},
     {1, 2, 1},
     Initializer("two", kFloatTensor, "2", "float_data: [2, 2]") +
         Initializer("three", kFloatTensor, "2", "float_data: [3, 4]")},
};

INSTANTIATE_TEST_SUITE_P(Models, OpsetTest, testing::ValuesIn(kCases));

TEST(OpsetConcatTest, JoinsMoreTensorsThanAWorkloadHas) {
  std::string nodes, names;
  for (int i = 0; i < 300; ++i) {
    const std::string name = absl::StrCat("t", i);
    nodes += NodeText("Abs", "x", name);
    absl::StrAppend(&names, name, " ");
  }
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto graph,
      ImportNode(13, "2", nodes + NodeText("Concat", names, "y", Int("axis", 0))));
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {{-1.0, 2.0}}));
  ASSERT_EQ(outputs[0].size(), 600u);
  EXPECT_EQ(outputs[0][598], ir::Scalar(1.0));
  EXPECT_EQ(outputs[0][599], ir::Scalar(2.0));
}

// Since opset 23, DequantizeLinear may give another type than that of the scale.
TEST(DequantizeLinearTest, HasTheTypeOfTheAttribute) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto graph,
      ImportOnnxBytes(
          BytesOf(Input("q", 2, "3") + Initializer("s", kFloatTensor, "", "float_data: 0.5") +
                      NodeText("DequantizeLinear", "q s", "y", Int("output_dtype", 10)) +
                      Output("y"),
                  23),
          ""));
  EXPECT_EQ(graph.value(graph.outputs[0]).type, (graph::TensorType{ir::DType::kF16, {3}}));
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {{0, 1, 4}}));
  EXPECT_EQ(outputs[0], (Scalars{0.0, 0.5, 2.0}));
}

// The product is rounded to the type once, and a scale that this type does not have is not lost.
TEST(DequantizeLinearTest, MultipliesBeforeItRounds) {
  const auto dequantized = [](const char* scale, ir::Scalar element) -> double {
    const auto graph = ImportOnnxBytes(
        BytesOf(Input("q", 6, "1") +
                    Initializer("s", kFloatTensor, "", absl::StrCat("float_data: ", scale)) +
                    NodeText("DequantizeLinear", "q s", "y", Int("output_dtype", 10)) + Output("y"),
                23),
        "");
    EXPECT_THAT(graph, IsOk());
    return Interpret(*graph, {{element}})->at(0).at(0).real();
  };
  EXPECT_NEAR(dequantized("1e-8", 1048576), 0.0105, 1e-4);
  EXPECT_EQ(dequantized("7e4", 0), 0);
}

// Negative indices count from the end since opset 11.
TEST(OneHotTest, NegativeIndicesByOpset) {
  for (const int opset : {10, 11}) {
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto graph,
        ImportOnnxBytes(BytesOf(Input("i", 7, "3") + Initializer("d", 7, "", "int64_data: 3") +
                                    Initializer("v", kFloatTensor, "2", "float_data: [0, 1]") +
                                    NodeText("OneHot", "i d v", "y") + Output("y"),
                                opset),
                        ""));
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {{-1, 1, 3}}));
    const double of_last = opset < 11 ? 0 : 1;
    EXPECT_EQ(outputs[0], (Scalars{0.0, 0.0, of_last, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0})) << opset;
  }
}

TEST(OpsetSoftmaxTest, ATensorMayBeEmpty) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph,
                            ImportNode(11, "3, 4, 0", NodeText("Softmax", "x", "y")));
  EXPECT_EQ(graph.value(graph.outputs[0]).type, (graph::TensorType{ir::DType::kF32, {3, 4, 0}}));
}

TEST(OpsetErrorTest, NameTheNode) {
  GoldenOfTest golden;
  golden.Add(ImportNode(12, "3", NodeText("Split", "x", "y z")).status().message());
  golden.Add(ImportNode(18, "8589934592",
                        NodeText("Split", "x", "y", Int("num_outputs", int64_t{1} << 33)))
                 .status()
                 .message());
  golden.Add(ImportNode(12, "8589934592, 1", NodeText("GatherND", "x i", "y", Int("batch_dims", 1)),
                        Input("i", 7, "8589934592, 1"))
                 .status()
                 .message());
  golden.Add(ImportNode(8, "1, 1, 2",
                        NodeText("BatchNormalization", "x w w w w", "y", Int("spatial", 0)),
                        Initializer("w", kFloatTensor, "1", "float_data: 1"))
                 .status()
                 .message());
  golden.Add(ImportNode(12, "", NodeText("Softmax", "x", "y")).status().message());
  golden.Add(
      ImportNode(12, "2", NodeText("Squeeze", "x", "y", String("axes", "0"))).status().message());
  for (const char* op : {"Softmax", "Split", "GroupNormalization", "Resize", "Clip"}) {
    EXPECT_FALSE(ImportNode(9, "2", NodeText(op, "_", "y", Float("min", 1))).ok()) << op;
  }
}

// A GatherND becomes a Gather of flat indices. An index that is out of range in one dimension must
// not become that of another element.
TEST(GatherNDTest, FlatIndicesKeepWhatIsOutOfRange) {
  HONE_ASSERT_OK_AND_ASSIGN(
      auto graph, ImportNode(12, "3, 4", NodeText("GatherND", "x i", "y"), Input("i", 7, "7, 2")));
  ASSERT_EQ(graph.nodes.back().op, "Gather");
  graph.outputs = {graph.nodes.back().inputs[1]};
  std::erase_if(graph.nodes, [](const graph::Node& node) {
    return node.op == "Gather" || node.op == "Reshape";  // of the data
  });
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto indices,
      graph::Interpret(graph,
                       {ir::Scalars(12, 0.0), {0, 0, 2, 3, -3, -4, -1, 1, 0, 4, 3, 0, 2, -5}}));
  const ir::Scalars& flat = indices[0];
  ASSERT_EQ(flat.size(), 7u);
  EXPECT_EQ(ir::Scalars(flat.begin(), flat.begin() + 4), ir::Scalars({0, 11, 0, 9}));
  for (size_t i = 4; i < flat.size(); ++i) {
    EXPECT_TRUE(flat[i] < ir::Scalar(-12) || ir::Scalar(12) <= flat[i]) << flat[i];
  }
}

}  // namespace
}  // namespace hone::onnx
