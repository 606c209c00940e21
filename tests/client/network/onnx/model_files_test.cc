// Real models, from the ONNX project and its collection of models. The weights of the light ones
// are ConstantOfShape nodes. ONNX Runtime computed the expected outputs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "client/network/graph/interpreter.h"
#include "client/network/onnx/import.h"
#include "client/network/onnx/tensor_file.h"
#include "common/base/file.h"
#include "tests/status.h"

namespace hone::onnx {
namespace {

constexpr char kFolder[] = "tests/client/network/onnx/testdata/";

absl::StatusOr<graph::Graph> ImportFile(const std::string& name) {
  return ImportOnnx(kFolder + name + ".onnx");
}

std::set<std::string> OperatorsOf(const graph::Graph& graph) {
  std::set<std::string> operators;
  for (const graph::Node& node : graph.nodes) operators.insert(node.op);
  return operators;
}

// The type of the only output, which must be that of the expected tensor.
void ExpectOutputType(const graph::Graph& graph, const std::string& expected_file) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto bytes, ReadFile(kFolder + expected_file));
  HONE_ASSERT_OK_AND_ASSIGN(const auto expected, ParseTensorFile(bytes));
  ASSERT_EQ(graph.outputs.size(), 1u);
  EXPECT_EQ(graph.value(graph.outputs[0]).type, expected.tensor.type);
}

TEST(ModelFilesTest, MnistComputes) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, ImportFile("mnist-8"));
  ir::Scalars image;
  for (int i = 0; i < 28 * 28; ++i) image.push_back(static_cast<float>(i) / (28 * 28));
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {image}));
  const double expected[] = {-0.07541232, -0.63691688, 0.12419327,  0.41313681, -0.29414731,
                             1.17776012,  0.16968431,  -2.16690087, 0.92841125, 0.20145969};
  ASSERT_EQ(outputs[0].size(), std::size(expected));
  for (size_t i = 0; i < std::size(expected); ++i) {
    EXPECT_NEAR(outputs[0][i].real(), expected[i], 2e-5) << i;
  }
}

TEST(ModelFilesTest, SqueezeNet) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, ImportFile("light_squeezenet"));
  EXPECT_EQ(OperatorsOf(graph), (std::set<std::string>{"Concat", "Conv", "GlobalAveragePool",
                                                       "MaxPool", "Relu", "Softmax", "Reshape"}));
  EXPECT_EQ(graph.inputs.size(), 1u);
  ExpectOutputType(graph, "light_squeezenet_output_0.pb");
}

TEST(ModelFilesTest, ResNet50) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, ImportFile("light_resnet50"));
  const auto convolutions =
      std::count_if(graph.nodes.begin(), graph.nodes.end(),
                    [](const graph::Node& node) { return node.op == "Conv"; });
  EXPECT_EQ(convolutions, 53);
  EXPECT_EQ(graph.inputs.size(), 1u);
  ExpectOutputType(graph, "light_resnet50_output_0.pb");
}

}  // namespace
}  // namespace hone::onnx
