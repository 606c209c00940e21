// What was imported can be computed: whichever outputs of a node are used, however many inputs and
// outputs it has, and whatever numbers its attributes are.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/memory_plan.h"
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
using testing::HasSubstr;

constexpr int kF32Number = 1, kU8Number = 2, kI64Number = 7;

// Small numbers, negative ones too, without a pattern that axes have.
std::vector<Scalars> InputsOf(const graph::Graph& graph) {
  std::vector<Scalars> inputs;
  for (const graph::ValueId id : graph.inputs) {
    const graph::TensorType& type = graph.value(id).type;
    Scalars& elements = inputs.emplace_back();
    for (int64_t i = 0; i < type.elements(); ++i) {
      const double number = static_cast<double>((i * 37 + id * 11) % 23 - 9);
      elements.push_back(ir::CastTo(type.dtype, ir::IsFloat(type.dtype) ? number / 4 : number));
    }
  }
  return inputs;
}

// Imports a model, and computes it node by node and, after the passes, step by step. Internal: the
// results differ. Other errors are those of the import and of what follows.
absl::StatusOr<std::vector<Scalars>> Compute(const std::string& model, int opset) {
  HONE_ASSIGN_OR_RETURN(graph::Graph graph, ImportOnnxBytes(BytesOf(model, opset), ""));
  const std::vector<Scalars> inputs = InputsOf(graph);
  const auto failed = [](const absl::Status& status) {
    return absl::InternalError(absl::StrCat("after the import: ", status.message()));
  };
  const auto expected = Interpret(graph, inputs);
  if (!expected.ok()) return failed(expected.status());
  if (const absl::Status status = graph::Optimize(graph); !status.ok()) return failed(status);
  const auto partition = graph::MakePartition(graph);
  if (!partition.ok()) return failed(partition.status());
  graph::PlanMemory(graph, *partition);
  const auto outputs = graph::RunSteps(graph, *partition, inputs);
  if (!outputs.ok()) return failed(outputs.status());
  const std::string difference = graph::Difference(*expected, *outputs, 1e-5);
  if (!difference.empty()) return absl::InternalError(difference);
  return expected;
}

// A node of several outputs, with the model's inputs and constants. `doubled`: an operator of two
// equal inputs, or of one, that reads each output.
struct Several {
  std::string name;
  int opset = 17;
  std::string given;
  std::string op, inputs, attributes;
  std::vector<std::string> outputs;
  std::vector<std::string> readers;  // of each output
};

const std::string kImage = Input("x", kF32Number, "1, 2, 5, 6");
const std::string kSequence = Input("x", kF32Number, "3, 2, 4");

std::string Weights(const std::string& name, const std::string& shape, int count) {
  std::vector<std::string> elements;
  for (int i = 0; i < count; ++i) elements.push_back(absl::StrCat((i * 29 % 17 - 8) / 8.0));
  return Initializer(name, kF32Number, shape,
                     absl::StrCat("float_data: [", absl::StrJoin(elements, ", "), "]"));
}

Several Recurrent(const std::string& op, int gates, const std::string& direction) {
  const int d = direction == "bidirectional" ? 2 : 1, rows = gates * 3;
  Several node{op + direction,
               14,
               kSequence + Weights("w", absl::StrCat(d, ", ", rows, ", 4"), d * rows * 4) +
                   Weights("r", absl::StrCat(d, ", ", rows, ", 3"), d * rows * 3),
               op,
               "x w r",
               String("direction", direction) + Int("hidden_size", 3)};
  node.outputs = {"y", "h"};
  if (op == "LSTM") node.outputs.push_back("c");
  node.readers.assign(node.outputs.size(), "Abs");
  return node;
}

std::vector<Several> NodesOfSeveralOutputs() {
  const std::string window = Ints("kernel_shape", "3, 2") + Ints("strides", "2, 2") +
                             Ints("pads", "1, 1, 1, 1") + Ints("dilations", "2, 3");
  const std::string scale = Weights("s", "6", 6) + Weights("b", "6", 6);
  const std::string k = Initializer("k", kI64Number, "1", "int64_data: 2");
  const std::string sizes = Initializer("sizes", kI64Number, "3", "int64_data: [1, 3, 2]");
  std::vector<Several> nodes = {
      {"LayerNormalization",
       17,
       kImage + scale,
       "LayerNormalization",
       "x s b",
       "",
       {"y", "mean", "inverse"},
       {"Abs", "Abs", "Abs"}},
      {"LayerNormalization_axis_1",
       17,
       kImage + Weights("t", "2, 5, 6", 60),
       "LayerNormalization",
       "x t",
       Int("axis", 1),
       {"y", "mean", "inverse"},
       {"Abs", "Abs", "Abs"}},
      {"Attention",
       23,
       Input("q", kF32Number, "1, 4, 3, 2") + Input("k", kF32Number, "1, 2, 3, 2") +
           Input("v", kF32Number, "1, 2, 3, 2") + Input("pk", kF32Number, "1, 2, 2, 2") +
           Input("pv", kF32Number, "1, 2, 2, 2"),
       "Attention",
       "q k v _ pk pv",
       Int("is_causal", 1) + Float("softcap", 2) + Int("qk_matmul_output_mode", 1),
       {"y", "keys", "values", "scores"},
       {"Abs", "Abs", "Abs", "Abs"}},
      {"DynamicQuantizeLinear",
       11,
       kImage,
       "DynamicQuantizeLinear",
       "x",
       "",
       {"y", "scale", "zero"},
       {"Add", "Abs", "Add"}},
      {"MaxPool",
       12,
       kImage,
       "MaxPool",
       "x",
       Ints("kernel_shape", "2, 2"),
       {"y", "at"},
       {"Abs", "Add"}},
      {"MaxPool_dilations", 12, kImage, "MaxPool", "x", window, {"y", "at"}, {"Abs", "Add"}},
      {"MaxPool_by_columns",
       12,
       kImage,
       "MaxPool",
       "x",
       window + Int("storage_order", 1),
       {"y", "at"},
       {"Abs", "Add"}},
      {"TopK", 11, kImage + k, "TopK", "x k", Int("largest", 0), {"y", "at"}, {"Abs", "Add"}},
      {"TopK_axis", 11, kImage + k, "TopK", "x k", Int("axis", 1), {"y", "at"}, {"Abs", "Add"}},
      {"Split",
       13,
       kImage + sizes,
       "Split",
       "x sizes",
       Int("axis", 3),
       {"a", "b", "c"},
       {"Abs", "Abs", "Abs"}},
      {"Split_outermost",
       13,
       Input("x", kF32Number, "6, 16") + sizes,
       "Split",
       "x sizes",
       "",
       {"a", "b", "c"},
       {"Abs", "Abs", "Abs"}},
      {"Split_empty",
       13,
       kImage + Initializer("sizes", kI64Number, "3", "int64_data: [0, 6, 0]"),
       "Split",
       "x sizes",
       Int("axis", 3),
       {"a", "b", "c"},
       {"Abs", "Abs", "Abs"}},
      {"Dropout", 13, kImage, "Dropout", "x", "", {"y", "mask"}, {"Abs", "Not"}},
  };
  for (const std::string direction : {"forward", "reverse", "bidirectional"}) {
    nodes.push_back(Recurrent("RNN", 1, direction));
    nodes.push_back(Recurrent("GRU", 3, direction));
    nodes.push_back(Recurrent("LSTM", 4, direction));
  }
  return nodes;
}

// How a model uses the outputs of a node that are wanted.
enum class Use {
  kOutput,           // they are outputs of the model; the other ones have no name
  kOutputWithNames,  // the same, but the other ones have names, too
  kRead,             // a node reads them
  kOutputAndRead,    // both
};

class SeveralOutputsTest : public testing::TestWithParam<Several> {};

TEST_P(SeveralOutputsTest, EverySubsetIsComputed) {
  const Several& node = GetParam();
  const int all = (1 << node.outputs.size()) - 1;
  // The results for all outputs, each followed by that of its reader.
  std::vector<Scalars> expected;
  for (int subset = all; subset > 0; --subset) {
    for (const Use use : {Use::kOutputAndRead, Use::kRead, Use::kOutputWithNames, Use::kOutput}) {
      std::vector<std::string> names;
      std::string readers, outputs;
      std::vector<Scalars> wanted;
      for (size_t i = 0; i < node.outputs.size(); ++i) {
        const bool is_wanted = (subset >> i & 1) != 0;
        const std::string& name = node.outputs[i];
        names.push_back(is_wanted || use == Use::kOutputWithNames ? name : "_");
        if (!is_wanted) continue;
        if (use != Use::kRead) {
          absl::StrAppend(&outputs, Output(name));
          if (!expected.empty()) wanted.push_back(expected[2 * i]);
        }
        if (use == Use::kOutput || use == Use::kOutputWithNames) continue;
        const std::string operands = node.readers[i] == "Add" ? name + " " + name : name;
        absl::StrAppend(&readers, NodeText(node.readers[i], operands, name + "_read"));
        absl::StrAppend(&outputs, Output(name + "_read"));
        if (!expected.empty()) wanted.push_back(expected[2 * i + 1]);
      }
      const std::string model =
          node.given + NodeText(node.op, node.inputs, absl::StrJoin(names, " "), node.attributes) +
          readers + outputs;
      SCOPED_TRACE(
          absl::StrCat("outputs ", absl::StrJoin(names, " "), ", use ", static_cast<int>(use)));
      HONE_ASSERT_OK_AND_ASSIGN(const auto results, Compute(model, node.opset));
      if (expected.empty()) {
        expected = results;
        continue;
      }
      EXPECT_EQ(graph::Difference(wanted, results, 1e-6), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, SeveralOutputsTest, testing::ValuesIn(NodesOfSeveralOutputs()),
                         [](const auto& test) { return test.param.name; });

TEST(ComputableTest, TrainingIsRefused) {
  const std::string model =
      kImage + Weights("p", "2", 2) +
      NodeText("BatchNormalization", "x p p p p", "y mean variance", Int("training_mode", 1)) +
      Output("mean");
  EXPECT_THAT(Compute(model, 15).status().message(),
              HasSubstr("node 'n_y' (BatchNormalization): training is not supported"));
}

std::string Names(const std::string& prefix, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(absl::StrCat(prefix, i));
  return absl::StrJoin(names, " ");
}

const int kCounts[] = {1, 2, 3, 16, 17, 31, 33, 127, 128, 129, 200, 201, 255, 256, 257, 300};

TEST(ComputableTest, NodesMayHaveManyInputs) {
  for (const int count : kCounts) {
    std::string inputs;
    for (int i = 0; i < count; ++i) absl::StrAppend(&inputs, Input(absl::StrCat("x", i), 1, "2"));
    for (const std::string op : {"Concat", "Sum", "Max", "Min", "Mean"}) {
      SCOPED_TRACE(absl::StrCat(op, " of ", count));
      const std::string node =
          NodeText(op, Names("x", count), "y", op == "Concat" ? Int("axis", 0) : "");
      HONE_ASSERT_OK_AND_ASSIGN(const auto results, Compute(inputs + node + Output("y"), 13));
      // InputsOf() gives the input i these elements.
      double result = op == "Max" ? -1e9 : op == "Min" ? 1e9 : 0;
      for (int i = 0; i < count; ++i) {
        const double element = (i * 11 % 23 - 9) / 4.0;
        result = op == "Max"      ? std::max(result, element)
                 : op == "Min"    ? std::min(result, element)
                 : op == "Concat" ? element
                                  : result + element;
      }
      if (op == "Mean") result /= count;
      const Scalars& y = results[0];
      ASSERT_EQ(y.size(), op == "Concat" ? 2u * count : 2u);
      EXPECT_NEAR(y[y.size() - 2].real(), result, 1e-4);
    }
  }
}

TEST(ComputableTest, AnEinsumMayHaveManyInputs) {
  for (const int count : kCounts) {
    std::string inputs;
    for (int i = 0; i < count; ++i) absl::StrAppend(&inputs, Input(absl::StrCat("x", i), 1, "2"));
    std::vector<std::string> terms(count, "i");
    const std::string equation = String("equation", absl::StrJoin(terms, ",") + "->");
    const auto results =
        Compute(inputs + NodeText("Einsum", Names("x", count), "y", equation) + Output("y"), 13);
    if (count <= 200) {
      EXPECT_THAT(results, IsOk()) << count;
    } else {
      EXPECT_THAT(results.status().message(),
                  HasSubstr("node 'n_y' (Einsum): more than 200 inputs are not supported"));
    }
  }
}

TEST(ComputableTest, ASplitMayHaveManyParts) {
  for (const int count : kCounts) {
    for (const int64_t axis : {0, 1}) {
      for (const bool constant : {false, true}) {
        SCOPED_TRACE(absl::StrCat(count, " parts along ", axis, constant ? " of a constant" : ""));
        const std::string shape =
            axis == 0 ? absl::StrCat(count, ", 16") : absl::StrCat("16, ", count);
        std::string outputs;
        for (int i = 0; i < count; i += 7) absl::StrAppend(&outputs, Output(absl::StrCat("p", i)));
        const std::string given =
            constant ? Weights("x", shape, 16 * count) : Input("x", kF32Number, shape);
        HONE_ASSERT_OK_AND_ASSIGN(
            const auto results,
            Compute(given +
                        NodeText("Split", "x", Names("p", count),
                                 Int("axis", axis) + Int("num_outputs", count)) +
                        outputs,
                    18));
        for (size_t o = 0; o < results.size(); ++o) {
          ASSERT_EQ(results[o].size(), 16u);
          const int64_t part = 7 * static_cast<int64_t>(o);
          const int64_t at = axis == 0 ? part * 16 + 3 : 3 * count + part;
          EXPECT_EQ(results[o][3].real(),
                    constant ? (at * 29 % 17 - 8) / 8.0 : (at * 37 % 23 - 9) / 4.0);
        }
      }
    }
  }
  // The parts are joined again in another order.
  std::vector<std::string> parts = absl::StrSplit(Names("p", 300), ' ');
  std::reverse(parts.begin(), parts.end());
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto results,
      Compute(Input("x", kF32Number, "300, 4") +
                  NodeText("Split", "x", Names("p", 300), Int("num_outputs", 300)) +
                  NodeText("Concat", absl::StrJoin(parts, " "), "y", Int("axis", 0)) + Output("y"),
              18));
  EXPECT_EQ(results[0][0].real(), ((299 * 4) * 37 % 23 - 9) / 4.0);
}

TEST(ComputableTest, EmptyTensorsAreConstants) {
  // As in a decoder without a past, whose first keys are empty.
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto joined,
      Compute(Input("past", kF32Number, "1, 0, 3") + Input("x", kF32Number, "1, 2, 3") +
                  NodeText("Abs", "past", "p") + NodeText("Concat", "p x", "y", Int("axis", 1)) +
                  Output("y") + Output("p"),
              13));
  EXPECT_EQ(joined[0].size(), 6u);
  EXPECT_EQ(joined[1].size(), 0u);
  EXPECT_THAT(
      Compute(Input("x", kF32Number, "2, 0") + NodeText("ReduceMean", "x", "y") + Output("y"), 13)
          .status()
          .message(),
      HasSubstr("node 'n_y' (ReduceMean): computes elements from 'x', which is f32[2, 0]"));
}

TEST(ComputableTest, ResultsOfEmptyTensorsHaveTheirDefinedValue) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::string x = Input("x", kF32Number, "2, 0"), w = Input("w", kF32Number, "0, 3");
  struct Case {
    std::string nodes;
    size_t elements;
    double value;
  };
  const auto reduce = [](const std::string& op) {
    return NodeText(op, "x", "y", Ints("axes", "1"));
  };
  std::vector<Case> cases = {
      {reduce("ReduceSumSquare"), 2, 0},
      {reduce("ReduceL1"), 2, 0},
      {reduce("ReduceL2"), 2, 0},
      {reduce("ReduceProd"), 2, 1},
      {reduce("ReduceMax"), 2, -kInf},
      {reduce("ReduceMin"), 2, kInf},
      {reduce("ReduceLogSum"), 2, -kInf},
      {reduce("ReduceLogSumExp"), 2, -kInf},
      {NodeText("ReduceSum", "x", "y"), 1, 0},
      {Initializer("pads", 7, "4", "int64_data: [1, 0, 0, 2]") + NodeText("Pad", "x pads", "y"), 6,
       0},
      {Initializer("pads", 7, "4", "int64_data: [1, 0, 0, 2]") + Weights("v", "", 1) +
           NodeText("Pad", "x pads v", "y"),
       6, -1},
      {NodeText("MatMul", "x w", "y"), 6, 0},
      {NodeText("Gemm", "x w", "y"), 6, 0},
      {Weights("c", "3", 3) + NodeText("Sub", "c c", "d") + NodeText("Gemm", "x w d", "y"), 6, 0},
  };
  for (const Case& c : cases) {
    const auto results = Compute(x + w + c.nodes + Output("y"), 13);
    ASSERT_THAT(results, IsOk()) << c.nodes;
    ASSERT_EQ((*results)[0].size(), c.elements) << c.nodes;
    for (const ir::Scalar& element : (*results)[0]) EXPECT_EQ(element.real(), c.value) << c.nodes;
  }
  // The other operand of a sum stays.
  const std::string b = Input("b", kF32Number, "2, 3");
  const std::string none = Input("i", 7, "0, 1") + Input("u", kF32Number, "0, 3");
  for (const std::string& node :
       {NodeText("Gemm", "x w b", "y"), none + NodeText("ScatterND", "b i u", "y")}) {
    HONE_ASSERT_OK_AND_ASSIGN(
        const auto results,
        Compute(x + w + b + node + NodeText("Sub", "y b", "z") + Output("z"), 13));
    for (const ir::Scalar& element : results[0]) EXPECT_EQ(element.real(), 0);
  }
}

TEST(ComputableTest, ModelsWithoutNodesOrInputs) {
  const std::string x = Input("x", kF32Number, "2, 3"), c = Weights("c", "2", 2);
  for (const std::string& model :
       {c + NodeText("Relu", "c", "y") + Output("y"), c + Output("c"), x + Output("x"),
        x + NodeText("Identity", "x", "y") + Output("y") + Output("x"),
        x + c + NodeText("Identity", "c", "y") + Output("c") + Output("y"),
        x + NodeText("Relu", "x", "y") + NodeText("Identity", "y", "z") + Output("z") +
            Output("y") + Output("z"),
        x + NodeText("Flatten", "x", "y") + NodeText("Flatten", "y", "z") + Output("y") +
            Output("z"),
        x + NodeText("Concat", "x x", "y", Int("axis", 0)) + Output("y") + Output("x"),
        x + NodeText("Dropout", "x", "y m") + Output("m") + Output("y")}) {
    const auto results = Compute(model, 13);
    EXPECT_THAT(results, IsOk()) << model;
  }
}

// A node whose attributes, or elements of constant inputs, are replaced by extreme numbers.
struct Extreme {
  std::string op, inputs, attributes;
  std::vector<std::string> numbers;  // attributes of one number
  std::vector<std::pair<std::string, int>> lists;
  std::vector<std::pair<std::string, int>> constants;  // inputs of the model, and their lengths
};

const Extreme kExtremes[] = {
    {"ArgMax", "x", "", {"axis", "keepdims", "select_last_index"}, {}, {}},
    {"Attention",
     "x x x",
     "",
     {"is_causal", "qk_matmul_output_mode", "softmax_precision", "left_window_size",
      "right_window_size", "q_num_heads"},
     {},
     {}},
    {"TensorScatter", "x x", "", {"axis"}, {}, {}},
    {"AveragePool",
     "x",
     Ints("kernel_shape", "2, 2"),
     {"ceil_mode", "count_include_pad"},
     {{"kernel_shape", 2}, {"strides", 2}, {"pads", 4}, {"dilations", 2}},
     {}},
    {"MaxPool",
     "x",
     Ints("kernel_shape", "2, 2"),
     {"ceil_mode", "storage_order"},
     {{"kernel_shape", 2}, {"strides", 2}, {"pads", 4}, {"dilations", 2}},
     {}},
    {"Concat", "x x", Int("axis", 0), {"axis"}, {}, {}},
    {"Conv",
     "x w",
     "",
     {"group"},
     {{"kernel_shape", 2}, {"strides", 2}, {"pads", 4}, {"dilations", 2}},
     {}},
    {"ConvTranspose",
     "x v",
     "",
     {"group"},
     {{"kernel_shape", 2},
      {"strides", 2},
      {"pads", 4},
      {"dilations", 2},
      {"output_padding", 2},
      {"output_shape", 2}},
     {}},
    {"CumSum", "x n", "", {"exclusive"}, {}, {{"n", 1}}},
    {"DepthToSpace", "x", Int("blocksize", 1), {"blocksize"}, {}, {}},
    {"SpaceToDepth", "x", Int("blocksize", 1), {"blocksize"}, {}, {}},
    {"EyeLike", "q", "", {"k", "dtype"}, {}, {}},
    {"Flatten", "x", "", {"axis"}, {}, {}},
    {"Gather", "x n", "", {"axis"}, {}, {{"n", 1}}},
    {"GatherElements", "q i", "", {"axis"}, {}, {}},
    {"GatherND", "x n", "", {"batch_dims"}, {}, {{"n", 1}}},
    {"GroupNormalization", "x b b", Int("num_groups", 1), {"num_groups"}, {}, {}},
    {"LRN", "x", Int("size", 3), {"size"}, {}, {}},
    {"LayerNormalization", "x f", "", {"axis", "stash_type"}, {}, {}},
    {"LpNormalization", "x", "", {"axis", "p"}, {}, {}},
    {"OneHot", "i n b", "", {"axis"}, {}, {{"n", 1}}},
    {"Pad", "x n", "", {}, {}, {{"n", 8}}},
    {"Range", "n m k", "", {}, {}, {{"n", 0}, {"m", 0}, {"k", 0}}},
    {"ReduceSum", "x n", "", {"keepdims"}, {}, {{"n", 2}}},
    {"Reshape", "x n", "", {"allowzero"}, {}, {{"n", 3}}},
    {"Resize", "x _ _ n", "", {"antialias", "exclude_outside"}, {{"axes", 2}}, {{"n", 4}}},
    {"ReverseSequence", "q i", "", {"batch_axis", "time_axis"}, {}, {}},
    {"Shape", "x", "", {"start", "end"}, {}, {}},
    {"Slice", "x n m k l", "", {}, {}, {{"n", 2}, {"m", 2}, {"k", 2}, {"l", 2}}},
    {"Softmax", "x", "", {"axis"}, {}, {}},
    {"Split", "x", Int("num_outputs", 1), {"axis", "num_outputs"}, {}, {}},
    {"Split", "x n", "", {"axis"}, {}, {{"n", 1}}},
    {"Squeeze", "x n", "", {}, {}, {{"n", 2}}},
    {"Unsqueeze", "x n", "", {}, {}, {{"n", 2}}},
    {"Expand", "x n", "", {}, {}, {{"n", 4}}},
    {"Tile", "x n", "", {}, {}, {{"n", 4}}},
    {"TopK", "x n", "", {"axis", "largest", "sorted"}, {}, {{"n", 1}}},
    {"Transpose", "x", "", {}, {{"perm", 4}}, {}},
    {"Trilu", "x n", "", {"upper"}, {}, {{"n", 1}}},
    {"QuantizeLinear", "x b", "", {"axis", "block_size", "output_dtype", "saturate"}, {}, {}},
    {"DequantizeLinear", "u b", "", {"axis", "block_size"}, {}, {}},
    {"ScatterElements", "q i q", "", {"axis"}, {}, {}},
    {"RNN", "s rw rr", "", {"hidden_size", "layout", "linear_before_reset"}, {}, {}},
    {"ConstantOfShape", "n", "", {}, {}, {{"n", 3}}},
    {"CenterCropPad", "x n", "", {}, {}, {{"n", 4}}},
    {"Col2Im",
     "q3 n m",
     "",
     {},
     {{"strides", 2}, {"pads", 4}, {"dilations", 2}},
     {{"n", 2}, {"m", 2}}},
    {"DeformConv",
     "x w o",
     "",
     {"group", "offset_group"},
     {{"kernel_shape", 2}, {"strides", 2}, {"pads", 4}, {"dilations", 2}},
     {}},
    {"HannWindow", "n", "", {"periodic", "output_datatype"}, {}, {{"n", 0}}},
    {"MeanVarianceNormalization", "x", "", {}, {{"axes", 3}}, {}},
    {"SoftmaxCrossEntropyLoss", "q n", "", {"ignore_index"}, {}, {{"n", 2}}},
    {"Unique", "i", "", {"axis", "sorted"}, {}, {}},
};

TEST(ComputableTest, ExtremeNumbersAreRefusedOrComputed) {
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  const int64_t numbers[] = {-kLargest - 1,
                             -(int64_t{1} << 61),
                             -(int64_t{1} << 33),
                             -1,
                             0,
                             1,
                             2,
                             int64_t{1} << 20,
                             int64_t{1} << 28,
                             int64_t{1} << 31,
                             int64_t{1} << 33,
                             int64_t{1} << 61,
                             kLargest};
  int computed = 0, refused = 0;
  const auto run = [&](const Extreme& node, const std::string& attributes,
                       const std::string& images, const std::string& constants,
                       const std::string& what) {
    const std::string model =
        Input("x", kF32Number, images) + Input("w", kF32Number, "2, 2, 2, 2") +
        Input("v", kF32Number, absl::StartsWith(images, "1, 0") ? "0, 2, 2, 2" : "2, 2, 2, 2") +
        Weights("b", "2", 2) + Weights("f", "4", 4) + Input("q", kF32Number, "2, 2") +
        Input("u", kU8Number, "2, 2") +
        Initializer("i", kI64Number, "2, 2", "int64_data: [1, 0, 0, 1]") +
        Input("q3", kF32Number, "1, 2, 1") + Input("o", kF32Number, "1, 8, 3, 3") +
        Input("s", kF32Number, "2, 2, 2") + Weights("rw", "1, 2, 2", 4) +
        Weights("rr", "1, 2, 2", 4) + constants + NodeText(node.op, node.inputs, "y", attributes) +
        Output("y");
    const auto graph = ImportOnnxBytes(BytesOf(model, 21), "");
    SCOPED_TRACE(absl::StrCat(node.op, " with ", what, " of images [", images, "]"));
    if (!graph.ok()) {
      ++refused;
      EXPECT_THAT(graph.status().message(), HasSubstr("node 'n_y")) << graph.status();
      return;
    }
    ++computed;
    graph::Graph optimized = *graph;
    ASSERT_THAT(graph::Optimize(optimized), IsOk());
    const auto partition = graph::MakePartition(optimized);
    EXPECT_THAT(partition, IsOk());
  };
  const auto constants = [](const Extreme& node, const std::string& changed, int at,
                            int64_t number) {
    std::string text;
    for (const auto& [name, length] : node.constants) {
      std::vector<std::string> elements;
      for (int i = 0; i < std::max(length, 1); ++i) {
        elements.push_back(absl::StrCat(name == changed && i == at ? number : 1));
      }
      absl::StrAppend(
          &text, Initializer(name, kI64Number, length == 0 ? "" : absl::StrCat(length),
                             absl::StrCat("int64_data: [", absl::StrJoin(elements, ", "), "]")));
    }
    return text;
  };
  for (const Extreme& node : kExtremes) {
    for (const std::string images : {"1, 2, 4, 4", "1, 0, 4, 4", "1, 8589934592, 0, 1"}) {
      for (const int64_t number : numbers) {
        for (const std::string& name : node.numbers) {
          // The attribute replaces a needed one of the same name.
          const std::string others =
              absl::StrContains(node.attributes, absl::StrCat("'", name, "'")) ? ""
                                                                               : node.attributes;
          run(node, others + Int(name, number), images, constants(node, "", 0, 0),
              absl::StrCat(name, " = ", number));
        }
        for (const auto& [name, length] : node.lists) {
          const std::string others =
              absl::StrContains(node.attributes, absl::StrCat("'", name, "'")) ? ""
                                                                               : node.attributes;
          for (int at = 0; at < length; ++at) {
            std::vector<std::string> elements(length, "1");
            elements[at] = absl::StrCat(number);
            run(node, others + Ints(name, absl::StrJoin(elements, ", ")), images,
                constants(node, "", 0, 0), absl::StrCat(name, "[", at, "] = ", number));
          }
          const std::vector<std::string> all(length, absl::StrCat(number));
          run(node, others + Ints(name, absl::StrJoin(all, ", ")), images,
              constants(node, "", 0, 0), absl::StrCat(name, " = ", number, ", …"));
        }
        for (const auto& [name, length] : node.constants) {
          for (int at = 0; at < std::max(length, 1); ++at) {
            run(node, node.attributes, images, constants(node, name, at, number),
                absl::StrCat(name, "[", at, "] = ", number));
          }
        }
      }
    }
  }
  EXPECT_GT(computed, 500);
  EXPECT_GT(refused, 500);
}

}  // namespace
}  // namespace hone::onnx
