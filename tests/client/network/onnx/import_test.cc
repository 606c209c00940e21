#include "client/network/onnx/import.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "absl/strings/str_cat.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "common/base/file.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/golden.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::onnx {
namespace {

using ir::Scalars;
using testing::HasSubstr;

constexpr int kFloat = 1, kInt64 = 7;

absl::StatusOr<graph::Graph> Import(const std::string& graph, int opset = 17,
                                    const ImportOptions& options = {}) {
  return ImportOnnxBytes(BytesOf(graph, opset), "", options);
}

std::string ImportedText(const std::string& graph) {
  const auto imported = Import(graph);
  return imported.ok() ? imported->ToText() : imported.status().ToString();
}

// y = x * w + b.
std::string Dense() {
  return Input("x", kFloat, "N, 2") +
         Initializer("w", kFloat, "2, 3", "float_data: [1, 2, 3, 4, 5, 6]") +
         Initializer("b", kFloat, "3", "float_data: [0.5, 0.5, 0.5]") +
         NodeText("MatMul", "x w", "p") + NodeText("Add", "p b", "y") + Output("y");
}

TEST(ImportTest, Network) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, Import(Dense(), 17, {.shapes = {{"x", {1, 2}}}}));
  EXPECT_EQ(graph.ToText(),
            "graph g\ninput x: f32[1, 2]\nconstant w: f32[2, 3]\nconstant b: f32[3]\n"
            "n_p: p: f32[1, 3] = MatMul(x, w)\nn_y: y: f32[1, 3] = Add(p, b)\noutput y\n");
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {{1.0, 2.0}}));
  EXPECT_EQ(outputs[0], Scalars({9.5, 12.5, 15.5}));
}

TEST(ImportTest, InitializersMayBeInputsToo) {
  const std::string text = Input("w", kFloat, "2, 3") + Dense();
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, Import(text, 17, {.shapes = {{"x", {1, 2}}}}));
  EXPECT_EQ(graph.inputs.size(), 1u);
}

TEST(ImportTest, DeclaredInputsKeepTheirOpenDimensions) {
  const TemporaryFolder folder;
  const std::string path = folder / "net.onnx";
  const std::string graph =
      Input("w", kFloat, "2, 3") + Input("i", kInt64, "4, ?, N") + Input("s", kFloat, "") + Dense();
  ASSERT_THAT(WriteFileAtomically(path, BytesOf(graph, 17)), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const auto inputs, DeclaredInputs(path));
  ASSERT_EQ(inputs.size(), 3u);  // w has a value
  EXPECT_EQ(inputs[0].name, "i");
  EXPECT_EQ(inputs[0].dtype, "i64");
  using Shape = std::vector<std::variant<int64_t, std::string>>;
  EXPECT_EQ(inputs[0].shape, (Shape{4, "", "N"}));
  EXPECT_EQ(inputs[1].shape, Shape{});
  EXPECT_EQ(inputs[2].shape, (Shape{"N", 2}));
  EXPECT_THAT(DeclaredInputs(folder / "none.onnx").status(), StatusIs(absl::StatusCode::kNotFound));
}

TEST(ImportTest, OpenDimensions) {
  GoldenOfTest golden;
  const std::string open = Input("x", kFloat, "N, L") + NodeText("Relu", "x", "y") + Output("y");
  golden.Add(Import(open).status().message());
  HONE_ASSERT_OK_AND_ASSIGN(const auto by_name, Import(Dense(), 17, {.shapes = {{"N", {4}}}}));
  EXPECT_EQ(by_name.value(by_name.inputs[0]).type.shape, std::vector<int64_t>({4, 2}));
  golden.Add(Import(Dense(), 17, {.shapes = {{"x", {4, 3}}}}).status().message());
  golden.Add(Import(Dense(), 17, {.shapes = {{"z", {4, 3}}}}).status().message());
  // One name is one extent.
  const std::string two = Input("x", kFloat, "N, 2") + Input("z", kFloat, "N, 2") +
                          NodeText("Add", "x z", "y") + Output("y");
  const auto bound = Import(two, 17, {.shapes = {{"x", {3, 2}}}});
  ASSERT_THAT(bound, IsOk());
  golden.Add(Import(two, 17, {.shapes = {{"x", {3, 2}}, {"z", {4, 2}}}}).status().message());
}

std::vector<std::string> WarningsOf(const std::string& graph, int opset = 17) {
  std::vector<std::string> warnings;
  const auto imported = Import(graph, opset, {.warnings = &warnings});
  EXPECT_THAT(imported, IsOk());
  return warnings;
}

TEST(ImportTest, TheBatchIsOneIfNobodyGivesIt) {
  GoldenOfTest golden;
  // A dimension of this name is the batch in every input. A batch without a name is open in each.
  const std::string text = Input("x", kFloat, "N, 2") + Input("z", kFloat, "?, N") +
                           NodeText("Add", "x z", "y") + Output("y");
  std::vector<std::string> warnings;
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, Import(text, 17, {.warnings = &warnings}));
  EXPECT_EQ(graph.value(graph.inputs[0]).type.shape, std::vector<int64_t>({1, 2}));
  EXPECT_EQ(graph.value(graph.inputs[1]).type.shape, std::vector<int64_t>({1, 1}));
  for (const std::string& warning : warnings) golden.Add(warning);
  // One that is given is not assumed.
  EXPECT_THAT(WarningsOf(Input("x", kFloat, "2, 3") + NodeText("Relu", "x", "y") + Output("y")),
              testing::IsEmpty());
  warnings.clear();
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto given,
      Import(text, 17, {.shapes = {{"N", {2}}, {"z", {1, 2}}}, .warnings = &warnings}));
  EXPECT_EQ(given.value(given.inputs[0]).type.shape, std::vector<int64_t>({2, 2}));
  EXPECT_THAT(warnings, testing::IsEmpty());
}

TEST(ImportTest, WarnsOfUnknownAttributes) {
  const std::string x = Input("x", kFloat, "2, 3");
  const std::string two = NodeText("Relu", "x", "a", Float("alpha", 0.1)) +
                          NodeText("Relu", "a", "y", Float("alpha", 0.1)) + Output("y");
  EXPECT_THAT(WarningsOf(x + two),
              testing::ElementsAre("Relu has no attribute 'alpha' in opset 17, but node 'n_a' and "
                                   "1 more have it; it may be ignored"));
  // The bounds became inputs in opset 11, so this Clip does nothing.
  const std::string clip = NodeText("Clip", "x", "y", Float("min", 0)) + Output("y");
  EXPECT_THAT(WarningsOf(x + clip, 10), testing::IsEmpty());
  EXPECT_THAT(WarningsOf(x + clip, 11),
              testing::ElementsAre(HasSubstr("Clip has no attribute 'min' in opset 11")));
  EXPECT_THAT(WarningsOf(x + NodeText("LeakyRelu", "x", "y", Float("alpha", 0.1)) + Output("y")),
              testing::IsEmpty());
}

TEST(ImportTest, WarnsOfOutputsOfAnotherType) {
  const auto declared = [](int type, const std::string& shape) {
    std::string output = Input("y", type, shape);
    return Input("x", kFloat, "2, 3") + NodeText("Relu", "x", "y") + output.replace(0, 5, "output");
  };
  EXPECT_THAT(WarningsOf(declared(kFloat, "2, 3")), testing::IsEmpty());
  EXPECT_THAT(WarningsOf(declared(kFloat, "N, ?")), testing::IsEmpty());
  EXPECT_THAT(WarningsOf(declared(kFloat, "2, 4")),
              testing::ElementsAre("output 'y' is f32[2, 3], but the model declares f32[2, 4]"));
  EXPECT_THAT(WarningsOf(declared(kInt64, "2, 3")),
              testing::ElementsAre("output 'y' is f32[2, 3], but the model declares i64[2, 3]"));
  EXPECT_THAT(WarningsOf(declared(kFloat, "N")),
              testing::ElementsAre("output 'y' is f32[2, 3], but the model declares f32[N]"));
}

TEST(ImportTest, AnOutputMayBeListedTwice) {
  const std::string text = Input("x", kFloat, "2") + NodeText("Relu", "x", "y") + Output("y") +
                           Output("y") + Output("x") + Output("x");
  EXPECT_THAT(WarningsOf(text),
              testing::ElementsAre("tensor 'y' is an output twice; the second one is 'y_2'",
                                   "tensor 'x' is an output twice; the second one is 'x_2'"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, Import(text));
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {{-1.0, 2.0}}));
  EXPECT_EQ(outputs[1], Scalars({0.0, 2.0}));
  EXPECT_EQ(outputs[3], Scalars({-1.0, 2.0}));
}

TEST(ImportTest, AbsurdShapes) {
  GoldenOfTest golden;
  golden.Add(Import(Dense(), 17, {.shapes = {{"x", {int64_t{1} << 40, 2}}}}).status().message());
  golden.Add(Import(Dense(), 17, {.shapes = {{"x", {-1, 2}}}}).status().message());
}

TEST(ImportTest, ConstantInputs) {
  const std::string text = Input("x", kFloat, "2, 3") + Input("s", kInt64, "1") +
                           NodeText("Add", "s s", "t") + NodeText("ConstantOfShape", "t", "c") +
                           NodeText("Add", "c c", "y") + NodeText("Relu", "x", "z") + Output("y") +
                           Output("z");
  EXPECT_THAT(Import(text),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("node 'n_c' (ConstantOfShape): input 0 ('t') must be constant")));
  const graph::TensorType type{ir::DType::kI64, {1}};
  const Tensor two{type, graph::ConstantData(Encode(type, {2}))};
  ImportOptions options;
  options.constants.emplace("s", two);
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, Import(text, 17, options));
  EXPECT_EQ(graph.value(graph.outputs[0]).type.ToText(), "f32[4]");
  EXPECT_EQ(graph.inputs.size(), 1u);
  options.constants.emplace("nothing", two);
  GoldenOfTest().Add(Import(text, 17, options).status().message());
}

TEST(ImportTest, ShapesAreComputed) {
  // A tensor of twice the extents of x, of which nothing is left to compute.
  const std::string text =
      Input("x", kFloat, "2, 3") + NodeText("Shape", "x", "s") +
      NodeText("Constant", "", "two", Int("value_int", 2)) + NodeText("Mul", "s two", "t") +
      NodeText(
          "ConstantOfShape", "t", "c",
          "attribute { name: 'value' type: TENSOR t { data_type: 1 dims: 1 float_data: 7 } }") +
      Output("c");
  EXPECT_EQ(ImportedText(text), "graph g\ninput x: f32[2, 3]\nconstant c: f32[4, 6]\noutput c\n");
}

TEST(ImportTest, ForbearsFromLargeFolding) {
  GoldenOfTest golden;
  // The elements of one constant are stored; a product of two such is left to the network.
  const std::string filled = Initializer("s", kInt64, "2", "int64_data: [4096, 4096]") +
                             NodeText("ConstantOfShape", "s", "c");
  HONE_ASSERT_OK_AND_ASSIGN(const auto product,
                            Import(filled + NodeText("MatMul", "c c", "y") + Output("y")));
  EXPECT_EQ(product.nodes.size(), 1u);
  golden.Add(Import(Initializer("s", kInt64, "2", "int64_data: [100000, 100000]") +
                    NodeText("ConstantOfShape", "s", "c") + Output("c"))
                 .status()
                 .message());
  // Several, each below the limit.
  std::string many = Initializer("s", kInt64, "2", "int64_data: [8192, 4096]");
  for (int i = 0; i < 4; ++i) {
    many += NodeText("ConstantOfShape", "s", absl::StrCat("c", i)) + Output(absl::StrCat("c", i));
  }
  golden.Add(Import(many).status().message());
  golden.Add(Import(Initializer("a", kInt64, "", "int64_data: 0") +
                    Initializer("b", kInt64, "", "int64_data: 4000000000") +
                    Initializer("d", kInt64, "", "int64_data: 1") +
                    NodeText("Range", "a b d", "r") + Output("r"))
                 .status()
                 .message());
}

TEST(ImportTest, QuantizedWeightsStayQuantized) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto graph,
      Import(Input("x", kFloat, "2") + Initializer("w", 3, "2", "int32_data: [1, 2]") +
             Initializer("s", kFloat, "", "float_data: 0.5") +
             NodeText("DequantizeLinear", "w s", "d") + NodeText("Add", "x d", "y") + Output("y")));
  EXPECT_EQ(graph.nodes.size(), 2u);
}

TEST(ImportTest, IdentityAndDropoutVanish) {
  EXPECT_EQ(
      ImportedText(Input("x", kFloat, "2") + NodeText("Identity", "x", "a") +
                   NodeText("Relu", "a", "b") + NodeText("Dropout", "b", "c m") +
                   NodeText("Identity", "c", "y") + Output("y") + Output("m")),
      "graph g\ninput x: f32[2]\nconstant m: bool[2]\nn_b: y: f32[2] = Relu(x)\noutput y, m\n");
  GoldenOfTest().Add(ImportedText(Input("x", kFloat, "2") +
                                  Initializer("t", 9, "", "int32_data: 1") +
                                  NodeText("Dropout", "x _ t", "y") + Output("y")));
}

TEST(ImportTest, OutputsKeepTheirNames) {
  // y and z are both x; w is constant under two names.
  const std::string text =
      ImportedText(Input("x", kFloat, "2") + Initializer("w", kFloat, "1", "float_data: 1") +
                   NodeText("Identity", "x", "y") + NodeText("Identity", "x", "z") +
                   NodeText("Identity", "w", "v") + Output("y") + Output("z") + Output("v"));
  GoldenOfTest().Add(text);
}

TEST(ImportTest, NodesMayBeOutOfOrderAndUnneeded) {
  const std::string text =
      ImportedText(Input("x", kFloat, "2") + NodeText("Relu", "a", "y") +
                   NodeText("Fly", "x", "unneeded") + NodeText("Abs", "x", "a") + Output("y"));
  GoldenOfTest().Add(text);
}

TEST(ImportTest, NodesWithoutOrWithEqualNames) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto graph,
      Import(Input("x", kFloat, "2") + "node { op_type: 'Abs' input: 'x' output: 'a' } " +
             "node { op_type: 'Abs' input: 'a' output: 'b' } " +
             "node { op_type: 'Abs' name: 'Abs' input: 'b' output: 'c' } " + Output("c")));
  EXPECT_EQ(graph.nodes[0].name, "Abs");
  EXPECT_EQ(graph.nodes[1].name, "Abs_2");
  EXPECT_EQ(graph.nodes[2].name, "Abs_3");
}

// Takes minutes if finding a name takes time proportional to the number of nodes.
TEST(ImportTest, ManyNodesWithoutNames) {
  constexpr int kNodes = 30'000;
  std::string nodes;
  for (int n = 0; n < kNodes; ++n) {
    absl::StrAppend(&nodes, "node { op_type: 'Abs' input: 't", n, "' output: 't", n + 1, "' } ");
  }
  HONE_ASSERT_OK_AND_ASSIGN(const auto graph, Import(Input("t0", kFloat, "2") + nodes +
                                                     Output(absl::StrCat("t", kNodes))));
  EXPECT_EQ(graph.nodes.back().name, absl::StrCat("Abs_", kNodes));
}

TEST(ImportTest, ListsAllUnsupportedOperators) {
  const absl::Status status =
      Import(Input("x", kFloat, "2") + NodeText("Fly", "x", "a") + NodeText("Swim", "a", "b") +
             NodeText("Fly", "b", "y", "domain: 'com.acme'") + NodeText("Fly", "y", "z") +
             Output("z"))
          .status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kUnimplemented,
                               HasSubstr("3 operators are not supported:\n"
                                         "  Fly (of com.acme): 1 node, 'n_y'\n"
                                         "  Fly (opset 17): 2 nodes, first 'n_a'\n"
                                         "  Swim (opset 17): 1 node, 'n_b'\n")));
  GoldenOfTest().Add(
      Import(Input("x", kFloat, "2") + NodeText("RandomNormalLike", "x", "y") + Output("y"))
          .status()
          .message());
}

TEST(ImportTest, OldOpsets) {
  GoldenOfTest golden;
  const std::string relu = Input("x", kFloat, "2") + NodeText("Relu", "x", "y") + Output("y");
  EXPECT_THAT(Import(relu, 6), IsOk());
  EXPECT_THAT(Import(relu, 5), StatusIs(absl::StatusCode::kUnimplemented));
  const std::string add = Input("x", kFloat, "2") + NodeText("Add", "x x", "y") + Output("y");
  EXPECT_THAT(Import(add, 7), IsOk());
  golden.Add(Import(add, 6).status().message());
  EXPECT_THAT(Import(add, 25), IsOk());
  golden.Add(Import(add, 26).status().message());
}

TEST(ImportTest, WeightsMayBeNaN) {
  HONE_ASSERT_OK_AND_ASSIGN(
      const auto graph,
      Import(Input("x", kFloat, "1") + Initializer("w", kFloat, "1", "float_data: nan") +
             NodeText("Add", "x w", "y") + Output("y")));
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {{1.0}}));
  EXPECT_TRUE(std::isnan(outputs[0][0].real()));
}

TEST(ImportTest, HostileModels) {
  GoldenOfTest golden;
  const std::string x = Input("x", kFloat, "2");
  const struct {
    const char* what;
    std::string graph;
  } cases[] = {
      {"cycle", x + NodeText("Add", "x b", "a") + NodeText("Relu", "a", "b") + Output("b")},
      {"a node before a cycle", x + NodeText("Add", "x c", "a") + NodeText("Relu", "a", "c") +
                                    NodeText("Relu", "c", "d") + Output("d")},
      {"self", x + NodeText("Add", "x y", "y") + Output("y")},
      {"missing producer", x + NodeText("Add", "x z", "y") + Output("y")},
      {"missing output", x + NodeText("Relu", "x", "y") + Output("z")},
      {"two producers", x + NodeText("Relu", "x", "y") + NodeText("Abs", "x", "y") + Output("y")},
      {"an input is computed", x + NodeText("Relu", "x", "x") + Output("x")},
      {"two inputs", x + x + Output("x")},
      {"two initializers", Initializer("w", 1, "1", "float_data: 1") +
                               Initializer("w", 1, "1", "float_data: 1") + Output("w")},
      {"no outputs", x + NodeText("Relu", "x", "y")},
      {"empty", ""},
      {"no name", "input { } " + x + Output("x")},
      {"a size bomb",
       Initializer("w", kFloat, "1099511627776", "") + NodeText("Relu", "w", "y") + Output("y")},
      {"an empty tensor of absurd size", Input("z", kFloat, "0, 4611686018427387904") +
                                             NodeText("Concat", "z z", "y", Int("axis", 1)) +
                                             Output("y")},
      {"a result of absurd size", Input("x", kFloat, "100000, 1") +
                                      Input("z", kFloat, "1, 100000") +
                                      NodeText("Add", "x z", "y") + Output("y")},
      {"sequences", "input { name: 's' type { sequence_type { } } } " + Output("s")},
      {"no type", "input { name: 's' } " + Output("s")},
      {"strings", Input("s", 8, "2") + Output("s")},
      {"no shape", "input { name: 's' type { tensor_type { elem_type: 1 } } } " + Output("s")},
      {"negative", Input("s", 1, "2, -1") + Output("s")},
      {"sparse", x + "sparse_initializer { values { name: 'w' } } " + Output("x")},
      {"a graph as attribute",
       x + NodeText("Relu", "x", "y", "attribute { name: 'body' type: GRAPH g { } }") +
           Output("y")},
      {"a tensor as attribute",
       x +
           NodeText(
               "Relu", "x", "y",
               "attribute { name: 'a' type: TENSOR t { data_type: 1 dims: 1 float_data: 1 } }") +
           Output("y")},
      {"twice the attribute",
       x + NodeText("Relu", "x", "y", Int("a", 1) + Int("a", 1)) + Output("y")},
      {"a reference",
       x + NodeText("Relu", "x", "y", "attribute { name: 'a' type: INT ref_attr_name: 'b' }") +
           Output("y")},
      {"too many outputs", x + NodeText("Relu", "x", "y z") + Output("y")},
      {"too many outputs of Dropout",
       x + NodeText("Dropout", "x", "a b c") + NodeText("Relu", "c", "y") + Output("y")},
      {"no inputs", NodeText("Relu", "", "y") + Output("y")},
      {"an absent input", x + NodeText("Add", "_ x", "y") + Output("y")},
      {"identity of nothing", NodeText("Identity", "", "y") + Output("y")},
      {"a constant of nothing", NodeText("Constant", "", "y") + Output("y")},
      {"a constant string",
       NodeText("Constant", "", "y", String("value_string", "s")) + Output("y")},
      {"external data",
       Initializer("w", 1, "1",
                   "data_location: EXTERNAL external_data { key: 'location' value: '../w' }") +
           NodeText("Relu", "w", "y") + Output("y")},
  };
  for (const auto& c : cases) golden.Add(c.what, Import(c.graph).status().ToString());
}

TEST(ImportTest, ModelsBesideTheirGraph) {
  GoldenOfTest golden;
  const std::string relu = Input("x", kFloat, "2") + NodeText("Relu", "x", "y") + Output("y");
  const auto import = [&](auto change) {
    ::onnx::ModelProto model = ModelOf(relu);
    change(model);
    return std::string(ImportOnnxBytes(model.SerializeAsString(), "").status().message());
  };
  EXPECT_EQ(import([](::onnx::ModelProto&) {}), "");
  // No node calls the function.
  EXPECT_EQ(import([](::onnx::ModelProto& model) { model.add_functions()->set_name("F"); }), "");
  golden.Add(import([](::onnx::ModelProto& model) { model.add_training_info(); }));
  golden.Add(import([](::onnx::ModelProto& model) { model.clear_opset_import(); }));
  golden.Add(import([](::onnx::ModelProto& model) { model.clear_graph(); }));
}

TEST(ImportTest, Files) {
  EXPECT_THAT(ImportOnnx("/nowhere/model.onnx"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(ImportOnnx("/tmp"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ImportOnnxBytes("", ""), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ImportOnnxBytes("workload dense\n", ""),
              StatusIs(absl::StatusCode::kInvalidArgument));
  const std::string bytes = BytesOf(Dense());
  GoldenOfTest().Add(ImportOnnxBytes(bytes.substr(0, bytes.size() / 2), "").status().message());
}

// Changes, inserts and removes bytes of a valid model. Each is imported or refused.
TEST(ImportTest, MutatedModels) {
  const std::string bytes = BytesOf(
      Input("x", kFloat, "2, 2") + Initializer("w", kFloat, "2, 2", "float_data: [1, 2, 3, 4]") +
          Initializer("s", kInt64, "2", "int64_data: [2, 2]") + NodeText("MatMul", "x w", "p") +
          NodeText("Clip", "p", "q", Float("min", 0) + Float("max", 6)) +
          NodeText("ConstantOfShape", "s", "c") + NodeText("Add", "q c", "r") +
          NodeText("Softmax", "r", "y", Int("axis", 0)) + Output("y"),
      9);
  ASSERT_THAT(ImportOnnxBytes(bytes, ""), IsOk());
  std::mt19937_64 random(18);
  int imported = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string mutated = bytes;
    for (uint64_t edits = 1 + random() % 3; edits > 0 && !mutated.empty(); --edits) {
      const size_t at = random() % mutated.size();
      switch (random() % 4) {
        case 0:
          mutated[at] = static_cast<char>(random());
          break;
        case 1:
          mutated[at] ^= static_cast<char>(1 << (random() % 8));
          break;
        case 2:
          mutated.erase(at, 1 + random() % 4);
          break;
        default:
          mutated.insert(at, 1, static_cast<char>(random()));
      }
    }
    if (random() % 8 == 0) mutated.resize(random() % (mutated.size() + 1));
    const auto graph = ImportOnnxBytes(mutated, "");
    if (!graph.ok()) {
      EXPECT_FALSE(absl::IsInternal(graph.status())) << graph.status();
      continue;
    }
    ++imported;
    EXPECT_THAT(graph->Verify(), IsOk());
  }
  EXPECT_GT(imported, 20);
}

}  // namespace
}  // namespace hone::onnx
