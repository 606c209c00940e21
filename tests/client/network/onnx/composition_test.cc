// Operators of which nodes of other operators remain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/graph/partition.h"
#include "client/network/graph/pass/passes.h"
#include "client/network/onnx/import.h"
#include "common/base/status_macros.h"
#include "tests/client/network/graph/random_graph.h"
#include "tests/client/network/graph/run_steps.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/status.h"

namespace hone::onnx {
namespace {

using ir::Scalars;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kI32Type = 6;

// Numbers from -1 to 1 without a pattern that axes have.
Scalars Numbers(int64_t count, int64_t seed) {
  Scalars numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<double>((i * 37 + seed * 11) % 23 - 11) / 16);
  }
  return numbers;
}

int64_t Count(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

// A recurrent layer, as a model and as one node of a graph.
struct RecurrentLayer {
  std::string op;
  int64_t gates, steps;
  std::string direction = "forward";
  bool batch_first = false;
  std::vector<int64_t> lengths;  // none: all have `steps` elements
  bool constant_lengths = false;
  bool peepholes = false, states = true, bias = true;
  int64_t linear_before_reset = 0;

  static constexpr int64_t kBatch = 2, kInputs = 3, kHidden = 4;

  struct Operand {
    std::string name;
    graph::TensorType type;
    Scalars elements;
    bool constant;
  };

  int64_t directions() const { return direction == "bidirectional" ? 2 : 1; }

  // In the order of the operator; those without a name are absent.
  std::vector<Operand> Operands() const {
    const int64_t d = directions(), rows = gates * kHidden;
    const auto swapped = [&](std::vector<int64_t> shape) {
      if (batch_first) std::swap(shape[0], shape[1]);
      return shape;
    };
    std::vector<Operand> operands;
    const auto add = [&](const std::string& name, std::vector<int64_t> shape, bool constant) {
      const int64_t count = Count(shape);
      operands.push_back({name,
                          {ir::DType::kF32, std::move(shape)},
                          Numbers(count, static_cast<int64_t>(operands.size())),
                          constant});
    };
    add("x", swapped({steps, kBatch, kInputs}), false);
    add("w", {d, rows, kInputs}, true);
    add("r", {d, rows, kHidden}, true);
    add(bias ? "b" : "", {d, 2 * rows}, true);
    operands.push_back({lengths.empty() ? "" : "n",
                        {ir::DType::kI32, {kBatch}},
                        Scalars(lengths.begin(), lengths.end()),
                        constant_lengths});
    add(states ? "h" : "", swapped({d, kBatch, kHidden}), false);
    if (op == "LSTM") {
      add(states ? "c" : "", swapped({d, kBatch, kHidden}), false);
      add(peepholes ? "p" : "", {d, 3 * kHidden}, true);
    }
    while (operands.back().name.empty()) operands.pop_back();
    return operands;
  }

  std::vector<std::string> Outputs() const {
    return op == "LSTM" ? std::vector<std::string>{"y", "yh", "yc"}
                        : std::vector<std::string>{"y", "yh"};
  }

  std::string Model() const {
    std::string text;
    std::vector<std::string> names;
    for (const Operand& operand : Operands()) {
      names.push_back(operand.name.empty() ? "_" : operand.name);
      if (operand.name.empty()) continue;
      const bool is_float = operand.type.dtype == ir::DType::kF32;
      const std::string shape = absl::StrJoin(operand.type.shape, ", ");
      if (!operand.constant) {
        absl::StrAppend(&text, Input(operand.name, is_float ? 1 : kI32Type, shape));
        continue;
      }
      std::vector<std::string> elements;
      for (const ir::Scalar& element : operand.elements) elements.push_back(element.ToText());
      absl::StrAppend(&text, Initializer(operand.name, is_float ? 1 : kI32Type, shape,
                                         absl::StrCat(is_float ? "float_data: [" : "int32_data: [",
                                                      absl::StrJoin(elements, ", "), "]")));
    }
    std::string attributes = String("direction", direction) + Int("hidden_size", kHidden) +
                             Int("layout", batch_first ? 1 : 0);
    if (op == "GRU") attributes += Int("linear_before_reset", linear_before_reset);
    text += NodeText(op, absl::StrJoin(names, " "), absl::StrJoin(Outputs(), " "), attributes);
    for (const std::string& output : Outputs()) text += Output(output);
    return text;
  }

  // The elements of the inputs that are not constant.
  std::vector<Scalars> Inputs() const {
    std::vector<Scalars> inputs;
    for (const Operand& operand : Operands()) {
      if (!operand.name.empty() && !operand.constant) inputs.push_back(operand.elements);
    }
    return inputs;
  }

  // What the operator computes as one node.
  absl::StatusOr<std::vector<Scalars>> AsOneNode() const {
    graph::Graph graph;
    graph::Node node{.name = "layer", .op = op};
    for (const Operand& operand : Operands()) {
      node.inputs.push_back(operand.name.empty() ? graph::kNoValue
                            : operand.constant
                                ? graph.AddConstant(operand.name, operand.type,
                                                    graph::ConstantData(graph::Encode(
                                                        operand.type, operand.elements)))
                                : graph.AddValue(operand.name, operand.type));
      if (!operand.name.empty() && !operand.constant) graph.inputs.push_back(node.inputs.back());
    }
    node.attributes = {{"direction", direction},
                       {"layout", int64_t{batch_first}},
                       {"linear_before_reset", linear_before_reset}};
    HONE_RETURN_IF_ERROR(graph.AddNode(std::move(node), Outputs()));
    graph.outputs = graph.nodes[0].outputs;
    return Interpret(graph, Inputs());
  }
};

absl::StatusOr<std::vector<Scalars>> RunOptimized(graph::Graph graph,
                                                  const std::vector<Scalars>& inputs,
                                                  size_t* tasks = nullptr) {
  HONE_RETURN_IF_ERROR(graph::Optimize(graph));
  HONE_ASSIGN_OR_RETURN(const graph::Partition partition, graph::MakePartition(graph));
  if (tasks != nullptr) *tasks = partition.tasks.size();
  return graph::RunSteps(graph, partition, inputs);
}

TEST(CompositionTest, LongLayersAreWhatOneNodeComputes) {
  std::vector<RecurrentLayer> layers;
  for (const char* const direction : {"forward", "reverse", "bidirectional"}) {
    for (const bool batch_first : {false, true}) {
      layers.push_back({"LSTM", 4, 12, direction, batch_first});
      layers.push_back({"LSTM", 4, 12, direction, batch_first, {5, 12}});
      layers.push_back({"GRU", 3, 12, direction, batch_first, {0, 9}, true});
    }
  }
  layers.push_back({.op = "LSTM", .gates = 4, .steps = 10, .peepholes = true});
  layers.push_back({.op = "LSTM", .gates = 4, .steps = 10, .states = false, .bias = false});
  layers.push_back(
      {.op = "LSTM", .gates = 4, .steps = 10, .lengths = {10, 10}, .constant_lengths = true});
  layers.push_back({.op = "GRU", .gates = 3, .steps = 10, .linear_before_reset = 1});
  layers.push_back({.op = "RNN", .gates = 1, .steps = 10, .lengths = {3, 4}});
  for (const RecurrentLayer& layer : layers) {
    SCOPED_TRACE(absl::StrCat(layer.op, " ", layer.direction, layer.batch_first ? " by batch" : "",
                              layer.lengths.empty() ? "" : " with lengths"));
    const auto graph = ImportOnnxBytes(BytesOf(layer.Model()), "");
    ASSERT_THAT(graph, IsOk());
    EXPECT_GT(std::ssize(graph->nodes), layer.steps);
    const auto expected = layer.AsOneNode();
    ASSERT_THAT(expected, IsOk());
    const auto actual = Interpret(*graph, layer.Inputs());
    ASSERT_THAT(actual, IsOk());
    EXPECT_EQ(graph::Difference(*expected, *actual, 1e-5), "");
  }
}

TEST(CompositionTest, AllStepsOfALongLayerAreFewTasks) {
  for (const RecurrentLayer& layer : {RecurrentLayer{.op = "LSTM", .gates = 4, .steps = 150},
                                      RecurrentLayer{.op = "GRU",
                                                     .gates = 3,
                                                     .steps = 150,
                                                     .direction = "bidirectional",
                                                     .lengths = {150, 90}}}) {
    const auto graph = ImportOnnxBytes(BytesOf(layer.Model()), "");
    ASSERT_THAT(graph, IsOk());
    const auto expected = Interpret(*graph, layer.Inputs());
    ASSERT_THAT(expected, IsOk());
    size_t tasks = 0;
    const auto actual = RunOptimized(*graph, layer.Inputs(), &tasks);
    ASSERT_THAT(actual, IsOk());
    EXPECT_EQ(graph::Difference(*expected, *actual, 1e-5), "");
    EXPECT_LE(tasks, 24);
  }
  const RecurrentLayer endless{.op = "RNN", .gates = 1, .steps = 5000};
  EXPECT_THAT(ImportOnnxBytes(BytesOf(endless.Model()), "").status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("a sequence of 5000 steps in 1 directions is not supported")));
}

// The first output of a model for the elements of its inputs.
absl::StatusOr<std::vector<double>> FirstOf(const std::string& model, int opset,
                                            const std::vector<Scalars>& inputs) {
  HONE_ASSIGN_OR_RETURN(const graph::Graph graph, ImportOnnxBytes(BytesOf(model, opset), ""));
  HONE_ASSIGN_OR_RETURN(const auto outputs, RunOptimized(graph, inputs));
  std::vector<double> numbers;
  for (const ir::Scalar& element : outputs[0]) numbers.push_back(element.real());
  return numbers;
}

void ExpectFirst(const std::string& model, int opset, const std::vector<Scalars>& inputs,
                 const std::vector<double>& expected) {
  SCOPED_TRACE(model);
  HONE_ASSERT_OK_AND_ASSIGN(const auto actual, FirstOf(model, opset, inputs));
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-5) << i;
}

std::string ResizeOf(const std::string& shape, const std::string& scales, const std::string& roi,
                     const std::string& attributes) {
  return Input("x", 1, shape) + scales + roi +
         NodeText("Resize", roi.empty() ? "x _ s" : "x roi s", "y", attributes) + Output("y");
}

TEST(CompositionTest, ResizeWithAntialias) {
  const std::string half = Initializer("s", 1, "1", "float_data: 0.5");
  const std::string linear = String("mode", "linear") + Ints("axes", "2");
  const Scalars x = {1.0, 2.0, 3.0, 4.0};
  // Weights 1/4, 3/4, 3/4, 1/4 of the elements around the center, over their sum.
  ExpectFirst(ResizeOf("1, 1, 4", half, "", linear + Int("antialias", 1)), 18, {x},
              {3.25 / 2, 6.75 / 2});
  ExpectFirst(
      ResizeOf("1, 1, 4", half, "", linear + Int("antialias", 1) + Int("exclude_outside", 1)), 18,
      {x}, {3.0 / 1.75, 5.75 / 1.75});
  // Along another dimension than the last two.
  ExpectFirst(ResizeOf("1, 4, 1, 1", half, "",
                       String("mode", "linear") + Ints("axes", "1") + Int("antialias", 1)),
              18, {x}, {3.25 / 2, 6.75 / 2});
}

TEST(CompositionTest, ResizeOfARegion) {
  const std::string two = Initializer("s", 1, "3", "float_data: [1, 1, 1]");
  const std::string roi = Initializer("roi", 1, "6", "float_data: [0, 0, 0.5, 1, 1, 1.5]");
  const std::string crop = String("coordinate_transformation_mode", "tf_crop_and_resize") +
                           Float("extrapolation_value", 7);
  const Scalars x = {1.0, 2.0, 3.0, 4.0, 5.0};
  // The coordinates 2, 3, 4, 5, 6.
  ExpectFirst(ResizeOf("1, 1, 5", two, roi, crop + String("mode", "linear")), 17, {x},
              {3, 4, 5, 7, 7});
  ExpectFirst(ResizeOf("1, 1, 5", two, roi, crop + String("mode", "nearest")), 17, {x},
              {3, 4, 5, 7, 7});
}

TEST(CompositionTest, ResizeThatKeepsTheRatio) {
  const Scalars x = {1.0, 2.0, 3.0, 4.0};
  const auto model = [&](const std::string& policy) {
    return Input("x", 1, "2, 2") + Initializer("n", 7, "2", "int64_data: [4, 6]") +
           NodeText("Resize", "x _ _ n", "y",
                    String("mode", "nearest") + String("keep_aspect_ratio_policy", policy) +
                        String("coordinate_transformation_mode", "asymmetric") +
                        String("nearest_mode", "floor")) +
           Output("y");
  };
  ExpectFirst(model("not_larger"), 18, {x}, {1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4});
  HONE_ASSERT_OK_AND_ASSIGN(const graph::Graph larger,
                            ImportOnnxBytes(BytesOf(model("not_smaller"), 18), ""));
  EXPECT_EQ(larger.value(larger.outputs[0]).type.ToText(), "f32[6, 6]");
}

TEST(CompositionTest, GridSampleOfSeveralImages) {
  // Two images of 2x2; the grid swaps the corners of the second one.
  const std::string model = Input("x", 1, "2, 1, 2, 2") + Input("g", 1, "2, 1, 2, 2") +
                            NodeText("GridSample", "x g", "y", Int("align_corners", 1)) +
                            Output("y");
  ExpectFirst(
      model, 16,
      {{1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0}, {-1.0, -1.0, 0.0, 0.0, 1.0, 1.0, -1.0, -1.0}},
      {1, 2.5, 8, 5});
}

TEST(CompositionTest, GridsAndCrops) {
  ExpectFirst(Input("t", 1, "1, 2, 3") + Initializer("n", 7, "4", "int64_data: [1, 1, 1, 2]") +
                  NodeText("AffineGrid", "t n", "y") + Output("y"),
              20, {{1.0, 0.0, 0.5, 0.0, 2.0, 0.25}}, {0, 0.25, 1, 0.25});
  ExpectFirst(Input("x", 1, "4, 1") + Initializer("n", 7, "2", "int64_data: [1, 4]") +
                  NodeText("CenterCropPad", "x n", "y") + Output("y"),
              18, {{1.0, 2.0, 3.0, 4.0}}, {0, 2, 0, 0});
  ExpectFirst(Input("x", 1, "3, 2") + Initializer("c", 9, "3", "int32_data: [1, 0, 1]") +
                  NodeText("Compress", "x c", "y", Int("axis", 0)) + Output("y"),
              17, {{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}}, {1, 2, 5, 6});
}

TEST(CompositionTest, FourierTransforms) {
  // A shift by one element of a unit impulse.
  ExpectFirst(Input("x", 1, "1, 4, 1") + NodeText("DFT", "x", "y") + Output("y"), 17,
              {{0.0, 1.0, 0.0, 0.0}}, {1, 0, 0, -1, -1, 0, 0, 1});
  // A longer transform of complex numbers, and back.
  const std::string n = Initializer("n", 7, "", "int64_data: 4");
  ExpectFirst(Input("x", 1, "1, 2, 2") + n + NodeText("DFT", "x n", "f") +
                  NodeText("DFT", "f", "y", Int("inverse", 1)) + Output("y"),
              17, {{1.0, 2.0, -3.0, 0.5}}, {1, 2, -3, 0.5, 0, 0, 0, 0});
}

}  // namespace
}  // namespace hone::onnx
