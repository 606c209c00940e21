// Branches, loops, sequences and functions, of which only the nodes that run remain.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/network/graph/interpreter.h"
#include "client/network/onnx/import.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int kF32Type = 1, kI64Type = 7, kBoolType = 9;

std::string Body(const std::string& name, const std::string& graph) {
  return absl::StrCat("attribute { name: '", name, "' type: GRAPH g { name: '", name, "' ", graph,
                      " } } ");
}
std::string Given(const std::string& name) { return absl::StrCat("input { name: '", name, "' } "); }
std::string Bool(const std::string& name, bool value) {
  return Initializer(name, kBoolType, "", absl::StrCat("int32_data: ", value ? 1 : 0));
}
std::string Whole(const std::string& name, int64_t value) {
  return Initializer(name, kI64Type, "", absl::StrCat("int64_data: ", value));
}

// The first outputs of a network for these elements of its only input, as numbers.
absl::StatusOr<std::vector<double>> RunModel(const std::string& graph, std::vector<double> input,
                                             int opset = 17) {
  HONE_ASSIGN_OR_RETURN(const graph::Graph imported, ImportOnnxBytes(BytesOf(graph, opset), ""));
  std::vector<ir::Scalars> inputs;
  if (!imported.inputs.empty()) inputs.emplace_back(input.begin(), input.end());
  HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalars> outputs, Interpret(imported, inputs));
  std::vector<double> numbers;
  for (const ir::Scalar& element : outputs[0]) numbers.push_back(element.real());
  return numbers;
}

std::vector<double> MustRun(const std::string& graph, std::vector<double> input, int opset = 17) {
  const auto numbers = RunModel(graph, std::move(input), opset);
  EXPECT_THAT(numbers, IsOk());
  return numbers.value_or(std::vector<double>());
}

const std::string kX = Input("x", kF32Type, "2");

TEST(ControlFlowTest, IfTakesTheBranchOfAKnownCondition) {
  // The branches read x, which is defined outside of them, and have equal names inside.
  const std::string branches =
      Body("then_branch", NodeText("Neg", "x", "r") + NodeText("Abs", "r", "s") + Output("s")) +
      Body("else_branch", Initializer("two", kF32Type, "", "float_data: 2") +
                              NodeText("Mul", "x two", "r") + Output("r"));
  for (const bool condition : {true, false}) {
    EXPECT_THAT(
        MustRun(kX + Bool("c", condition) + NodeText("If", "c", "y", branches) + Output("y"),
                {3, -4}),
        condition ? ElementsAre(3, 4) : ElementsAre(6, -8));
  }
  // A condition that folds: the number of elements.
  const std::string folded = NodeText("Size", "x", "n") + Whole("two", 2) +
                             NodeText("Equal", "n two", "c") + NodeText("If", "c", "y", branches) +
                             Output("y");
  EXPECT_THAT(MustRun(kX + folded, {3, -4}), ElementsAre(3, 4));
}

TEST(ControlFlowTest, UnknownConditionsNameWhatTheyDependOn) {
  const std::string branches = Body("then_branch", NodeText("Neg", "x", "r") + Output("r")) +
                               Body("else_branch", NodeText("Abs", "x", "r") + Output("r"));
  const auto result = RunModel(Input("x", kF32Type, "1") + Input("limit", kF32Type, "1") +
                                   NodeText("Less", "x limit", "c") +
                                   NodeText("If", "c", "y", branches) + Output("y"),
                               {1});
  EXPECT_THAT(
      result.status(),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               HasSubstr("node 'n_y' (If): its condition ('c') must be known when the "
                         "model is read, but depends on inputs 'x', 'limit' of the network")));
}

// y doubles until it is at least 10 times its first value, and every value is an output.
TEST(ControlFlowTest, LoopsAreUnrolled) {
  const std::string body =
      Body("body", Given("i") + Given("go") + Given("v") + NodeText("Add", "v v", "w") +
                       NodeText("Identity", "go", "go2") + NodeText("Add", "w x", "scan") +
                       Output("go2") + Output("w") + Output("scan"));
  const std::string loop = kX + Whole("m", 3) + NodeText("Loop", "m _ x", "last all", body);
  EXPECT_THAT(MustRun(loop + Output("last"), {1, 2}), ElementsAre(8, 16));
  EXPECT_THAT(MustRun(loop + Output("all"), {1, 2}), ElementsAre(3, 6, 5, 10, 9, 18));
}

TEST(ControlFlowTest, LoopsEndWhenTheirConditionIsFalse) {
  // Goes on while i < 4, and adds i.
  const std::string body = Body(
      "body", Given("i") + Given("go") + Given("v") + Whole("four", 4) +
                  NodeText("Less", "i four", "go2") + NodeText("Cast", "i", "f", Int("to", 1)) +
                  NodeText("Add", "v f", "w") + Output("go2") + Output("w"));
  EXPECT_THAT(MustRun(kX + Bool("yes", true) + NodeText("Loop", "_ yes x", "y", body) + Output("y"),
                      {0, 1}),
              ElementsAre(10, 11));
  EXPECT_THAT(
      MustRun(kX + Bool("no", false) + NodeText("Loop", "_ no x", "y", body) + Output("y"), {0, 1}),
      ElementsAre(0, 1));
  const std::string endless =
      Body("body", Given("i") + Given("go") + Given("v") + NodeText("Neg", "v", "w") +
                       Output("go") + Output("w"));
  EXPECT_THAT(
      RunModel(kX + Bool("yes", true) + NodeText("Loop", "_ yes x", "y", endless) + Output("y"),
               {0, 1})
          .status(),
      StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("add more than 32768 nodes")));
}

TEST(ControlFlowTest, LoopsHaveALimitOfOutputs) {
  std::string outputs, names;
  for (int i = 0; i < 100; ++i) {
    outputs += Output("i");
    absl::StrAppend(&names, " s", i);
  }
  const std::string body = Body("body", Given("i") + Given("go") + Output("go") + outputs);
  EXPECT_THAT(RunModel(kX + Whole("m", 20000) + Bool("yes", true) +
                           NodeText("Loop", "m yes", names.substr(1), body) + Output("s0"),
                       {1, 2})
                  .status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("more than 1048576 inputs")));
}

TEST(ControlFlowTest, LoopsWithoutIterationsHaveEmptyOutputs) {
  const std::string scan =
      "output { name: 's' type { tensor_type { elem_type: 1 shape { dim { dim_value: 2 } } } } } ";
  const std::string body =
      Body("body", Given("i") + Given("go") + NodeText("Neg", "x", "s") + Output("go") + scan);
  HONE_ASSERT_OK_AND_ASSIGN(
      const graph::Graph graph,
      ImportOnnxBytes(
          BytesOf(kX + Whole("m", 0) + NodeText("Loop", "m _", "y", body) + Output("y")), ""));
  EXPECT_EQ(graph.value(graph.outputs[0]).type.ToText(), "f32[0, 2]");
}

TEST(ControlFlowTest, ScansGoForwardsAndBackwards) {
  const std::string body =
      Body("body", Given("sum") + Given("row") + NodeText("Add", "sum row", "next") +
                       Output("next") + NodeText("Identity", "next", "copy") + Output("copy"));
  const std::string given =
      Input("x", kF32Type, "3, 2") + Initializer("zero", kF32Type, "2", "float_data: [0, 0]");
  const auto scan = [&](const std::string& attributes) {
    return given +
           NodeText("Scan", "zero x", "last all", Int("num_scan_inputs", 1) + attributes + body);
  };
  const std::vector<double> x = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(MustRun(scan("") + Output("last"), x), ElementsAre(9, 12));
  EXPECT_THAT(MustRun(scan("") + Output("all"), x), ElementsAre(1, 2, 4, 6, 9, 12));
  EXPECT_THAT(MustRun(scan(Ints("scan_input_directions", "1")) + Output("all"), x),
              ElementsAre(5, 6, 8, 10, 9, 12));
  EXPECT_THAT(MustRun(scan(Ints("scan_output_directions", "1")) + Output("all"), x),
              ElementsAre(9, 12, 4, 6, 1, 2));
  EXPECT_THAT(MustRun(scan(Ints("scan_output_axes", "1")) + Output("all"), x),
              ElementsAre(1, 4, 9, 2, 6, 12));
}

TEST(ControlFlowTest, SequencesOfKnownStructure) {
  const std::string given = Input("x", kF32Type, "3, 2") + Whole("one", 1) + Whole("zero", 0);
  const std::string split = given + NodeText("SplitToSequence", "x", "s", Int("keepdims", 0));
  const std::vector<double> x = {1, 2, 3, 4, 5, 6};
  EXPECT_THAT(MustRun(split + NodeText("SequenceAt", "s one", "y") + Output("y"), x),
              ElementsAre(3, 4));
  EXPECT_THAT(MustRun(split + NodeText("SequenceErase", "s one", "t") +
                          NodeText("ConcatFromSequence", "t", "y", Int("axis", 0)) + Output("y"),
                      x),
              ElementsAre(1, 2, 5, 6));
  EXPECT_THAT(
      MustRun(split + NodeText("SequenceAt", "s zero", "a") +
                  NodeText("SequenceInsert", "s a one", "t") +
                  NodeText("ConcatFromSequence", "t", "y", Int("axis", 1) + Int("new_axis", 1)) +
                  Output("y"),
              x),
      ElementsAre(1, 1, 3, 5, 2, 2, 4, 6));
  EXPECT_THAT(MustRun(split + NodeText("SequenceLength", "s", "n") +
                          NodeText("Cast", "n", "y", Int("to", 1)) + Output("y"),
                      x),
              ElementsAre(3));
  const std::string body = Body("body", Given("row") + NodeText("Neg", "row", "r") + Output("r"));
  EXPECT_THAT(MustRun(split + NodeText("SequenceMap", "s", "t", body) +
                          NodeText("SequenceAt", "t one", "y") + Output("y"),
                      x),
              ElementsAre(-3, -4));
  EXPECT_THAT(RunModel(split + Output("s"), x).status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("output 's' is a sequence")));
  EXPECT_THAT(RunModel(split + NodeText("Neg", "s", "y") + Output("y"), x).status(),
              StatusIs(absl::StatusCode::kUnimplemented,
                       HasSubstr("node 'n_y' (Neg): input 0 ('s') is a sequence")));
  EXPECT_THAT(
      RunModel(given + Whole("far", 3) + NodeText("SplitToSequence", "x", "s", Int("keepdims", 0)) +
                   NodeText("SequenceAt", "s far", "y") + Output("y"),
               x)
          .status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               HasSubstr("position 3 of a sequence of 3 tensors")));
  EXPECT_THAT(RunModel(given + Initializer("sizes", 7, "2", "int64_data: [1, 1]") +
                           NodeText("SplitToSequence", "x sizes", "s") +
                           NodeText("SequenceAt", "s one", "y") + Output("y"),
                       x)
                  .status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("splits 3 elements into parts of 2 in all")));
}

TEST(ControlFlowTest, OptionalValues) {
  EXPECT_THAT(
      MustRun(kX + NodeText("Optional", "x", "o") + NodeText("OptionalGetElement", "o", "g") +
                  NodeText("Neg", "g", "y") + Output("y"),
              {1, 2}),
      ElementsAre(-1, -2));
  EXPECT_THAT(MustRun(NodeText("Optional", "", "o") + NodeText("OptionalHasElement", "o", "h") +
                          NodeText("Cast", "h", "y", Int("to", 1)) + Output("y"),
                      {}),
              ElementsAre(0));
}

// Says that the elements of a tensor are in a file.
void StoreIn(const std::string& file, ::onnx::TensorProto& tensor) {
  tensor.set_data_location(::onnx::TensorProto::EXTERNAL);
  ::onnx::StringStringEntryProto& location = *tensor.add_external_data();
  location.set_key("location");
  location.set_value(file);
}

// A function of the model with a parameter, which calls another one.
::onnx::ModelProto ModelWithFunctions() {
  ::onnx::ModelProto model =
      ModelOf(kX + NodeText("Twice", "x", "y", "domain: 'my' " + Float("by", 3)) + Output("y"), 17);
  ::onnx::FunctionProto& scale = *model.add_functions();
  scale.set_domain("my");
  scale.set_name("Scale");
  scale.add_input("a");
  scale.add_output("b");
  ::onnx::NodeProto& constant = *scale.add_node();
  constant.set_op_type("Constant");
  constant.add_output("factor");
  ::onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value_float");
  value.set_type(::onnx::AttributeProto::FLOAT);
  value.set_ref_attr_name("factor");
  ::onnx::NodeProto& product = *scale.add_node();
  product.set_op_type("Mul");
  product.add_input("a");
  product.add_input("factor");
  product.add_output("b");
  ::onnx::FunctionProto& twice = *model.add_functions();
  twice.set_domain("my");
  twice.set_name("Twice");
  twice.add_input("x");
  twice.add_output("y");
  for (const auto& [from, to] : {std::pair("x", "h"), std::pair("h", "y")}) {
    ::onnx::NodeProto& call = *twice.add_node();
    call.set_domain("my");
    call.set_op_type("Scale");
    call.add_input(from);
    call.add_output(to);
    ::onnx::AttributeProto& factor = *call.add_attribute();
    factor.set_name("factor");
    factor.set_type(::onnx::AttributeProto::FLOAT);
    factor.set_ref_attr_name("by");
  }
  return model;
}

TEST(ControlFlowTest, FunctionsAreInlined) {
  ::onnx::ModelProto model = ModelWithFunctions();
  HONE_ASSERT_OK_AND_ASSIGN(const graph::Graph graph,
                            ImportOnnxBytes(model.SerializeAsString(), ""));
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(graph, {ir::Scalars{1.0, 2.0}}));
  EXPECT_EQ(outputs[0][0].real(), 9);
  EXPECT_EQ(outputs[0][1].real(), 18);
}

// Weights in a file that only a function uses belong to the model.
TEST(ControlFlowTest, TheDigestOfAModelHasTheFilesOfFunctions) {
  const TemporaryFolder folder;
  ::onnx::ModelProto model = ModelWithFunctions();
  ::onnx::FunctionProto& scale = *model.mutable_functions(0);
  ::onnx::NodeProto& constant = *scale.add_node();
  constant.set_op_type("Constant");
  constant.add_output("weights");
  ::onnx::AttributeProto& value = *constant.add_attribute();
  value.set_name("value");
  value.set_type(::onnx::AttributeProto::TENSOR);
  StoreIn("w", *value.mutable_t());
  const auto digest = [&] {
    EXPECT_THAT(WriteFileAtomically(folder / "net.onnx", model.SerializeAsString()), IsOk());
    return DigestOfModel(folder / "net.onnx");
  };
  EXPECT_THAT(digest(), IsOk()) << "no node reads the weights";
  scale.mutable_node(1)->set_input(1, "weights");
  EXPECT_THAT(digest(), StatusIs(absl::StatusCode::kNotFound));
  ASSERT_THAT(WriteFileAtomically(folder / "w", "old"), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const Digest before, digest());
  ASSERT_THAT(WriteFileAtomically(folder / "w", "new"), IsOk());
  HONE_ASSERT_OK_AND_ASSIGN(const Digest after, digest());
  EXPECT_NE(before.ToHex(), after.ToHex());
}

TEST(ControlFlowTest, FunctionsThatCallThemselvesEnd) {
  ::onnx::ModelProto model = ModelWithFunctions();
  model.mutable_functions(1)->mutable_node(0)->set_op_type("Twice");
  EXPECT_THAT(ImportOnnxBytes(model.SerializeAsString(), "").status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("nested more than 64 deep")));
}

// Each call has twice the attributes of the one around it.
TEST(ControlFlowTest, AttributesThatGrowWithEachCallEnd) {
  ::onnx::ModelProto model = ModelWithFunctions();
  ::onnx::FunctionProto& twice = *model.mutable_functions(1);
  twice.mutable_node()->DeleteSubrange(1, 1);
  twice.mutable_node(0)->set_op_type("Twice");
  twice.mutable_node(0)->set_output(0, "y");
  ::onnx::AttributeProto& grown = *twice.mutable_node(0)->add_attribute();
  grown.set_name("g");
  grown.set_type(::onnx::AttributeProto::GRAPH);
  for (int i = 0; i < 2; ++i) {
    ::onnx::AttributeProto& part = *grown.mutable_g()->add_node()->add_attribute();
    part.set_name("part");
    part.set_type(::onnx::AttributeProto::GRAPH);
    part.set_ref_attr_name("g");
  }
  ::onnx::AttributeProto& first = *model.mutable_graph()->mutable_node(0)->add_attribute();
  first.set_name("g");
  first.set_type(::onnx::AttributeProto::GRAPH);
  first.mutable_g()->set_name("first");
  EXPECT_THAT(ImportOnnxBytes(model.SerializeAsString(), "").status(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("bytes together")));
}

}  // namespace
}  // namespace hone::onnx
