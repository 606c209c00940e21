// Models whose end runs on the host, because its shapes depend on computed elements.
#include "client/network/onnx/host_tail.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/network/graph/interpreter.h"
#include "client/network/graph/node_view.h"
#include "client/network/onnx/import.h"
#include "common/base/status_macros.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/status.h"
#include "tests/temporary_folder.h"

namespace hone::onnx {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int kTailF32 = 1, kTailI64 = 7;

class HostTailTest : public testing::Test {
 protected:
  absl::StatusOr<ImportedModel> Read(const std::string& graph) {
    std::ofstream(path_, std::ios::binary) << BytesOf(graph);
    return ImportOnnxWithTail(path_);
  }

  // Runs the graph with the interpreter, and the tail with its results.
  static absl::StatusOr<std::vector<Tensor>> Run(const ImportedModel& model,
                                                 const std::vector<ir::Scalars>& inputs) {
    HONE_ASSIGN_OR_RETURN(const std::vector<ir::Scalars> computed,
                          graph::Interpret(model.graph, inputs));
    std::vector<std::string> bytes;
    for (size_t o = 0; o < computed.size(); ++o) {
      bytes.push_back(graph::Encode(model.graph.value(model.graph.outputs[o]).type, computed[o]));
    }
    return model.tail->Run(bytes);
  }

  static std::vector<double> Numbers(const Tensor& tensor) {
    std::vector<double> numbers;
    for (const ir::Scalar& element : graph::Decode(tensor.type, tensor.data.bytes())) {
      numbers.push_back(element.real());
    }
    return numbers;
  }

  const TemporaryFolder folder_;
  const std::string path_ = folder_ / "model.onnx";
};

// The boxes of the remaining places, as the end of a detection model computes them.
TEST_F(HostTailTest, BoxesAreSelectedAtTheEnd) {
  const std::string graph =
      absl::StrCat(Input("b", kTailF32, "1, 4, 4"), Input("s", kTailF32, "1, 1, 4"),
                   Initializer("most", kTailI64, "", "int64_data: 10"),
                   Initializer("overlap", kTailF32, "", "float_data: 0.5"),
                   Initializer("least", kTailF32, "", "float_data: 0.2"),
                   Initializer("column", kTailI64, "1", "int64_data: 2"),
                   Initializer("row", kTailI64, "1", "int64_data: 0"),
                   NodeText("Relu", "b", "boxes"), NodeText("Sigmoid", "s", "scores"),
                   NodeText("NonMaxSuppression", "boxes scores most overlap least", "places"),
                   NodeText("Gather", "places column", "numbers", Int("axis", 1)),
                   NodeText("Squeeze", "numbers column_axis", "flat"),
                   Initializer("column_axis", kTailI64, "1", "int64_data: 1"),
                   NodeText("Squeeze", "boxes row", "all"), NodeText("Gather", "all flat", "kept"),
                   Output("kept"), Output("scores"));
  HONE_ASSERT_OK_AND_ASSIGN(const ImportedModel model, Read(graph));
  ASSERT_NE(model.tail, nullptr);
  EXPECT_THAT(model.tail->outputs(), ElementsAre("kept", "scores"));
  EXPECT_THAT(model.tail->nodes(),
              ElementsAre("node 'n_places' (NonMaxSuppression)", "node 'n_numbers' (Gather)",
                          "node 'n_flat' (Squeeze)", "node 'n_kept' (Gather)"));
  EXPECT_EQ(model.tail->Describe(),
            "node 'n_places' (NonMaxSuppression) and 3 nodes after it run on the host");
  std::vector<std::string> read;
  for (const graph::ValueId id : model.graph.outputs) read.push_back(model.graph.value(id).name);
  EXPECT_THAT(read, ElementsAre("scores", "all", "boxes"));

  // The second box overlaps the first, and the last has a low score.
  const ir::Scalars boxes = {0.0, 0.0, 2.0, 2.0, 0.0, 0.0, 2.0, 1.75,
                             4.0, 4.0, 6.0, 6.0, 8.0, 8.0, 9.0, 9.0};
  HONE_ASSERT_OK_AND_ASSIGN(std::vector<Tensor> outputs,
                            Run(model, {boxes, {3.0, 2.0, 1.0, -9.0}}));
  EXPECT_EQ(outputs[0].type.ToText(), "f32[2, 4]");
  EXPECT_THAT(Numbers(outputs[0]), ElementsAre(0, 0, 2, 2, 4, 4, 6, 6));
  EXPECT_EQ(outputs[1].type.ToText(), "f32[1, 1, 4]");
  // Another run has another number of boxes, or none.
  HONE_ASSERT_OK_AND_ASSIGN(outputs, Run(model, {boxes, {-9.0, -9.0, 1.0, 2.0}}));
  EXPECT_THAT(Numbers(outputs[0]), ElementsAre(8, 8, 9, 9, 4, 4, 6, 6));
  HONE_ASSERT_OK_AND_ASSIGN(outputs, Run(model, {boxes, {-9.0, -9.0, -9.0, -9.0}}));
  EXPECT_EQ(outputs[0].type.ToText(), "f32[0, 4]");
}

TEST_F(HostTailTest, TheBestOfThePlacesThatAreNotZero) {
  const std::string graph = absl::StrCat(
      Input("x", kTailF32, "2, 3"), Initializer("limit", kTailF32, "", "float_data: 1"),
      Initializer("zero", kTailI64, "1", "int64_data: 0"),
      Initializer("two", kTailI64, "1", "int64_data: 2"), NodeText("Abs", "x", "a"),
      NodeText("Greater", "a limit", "large"), NodeText("NonZero", "large", "places"),
      NodeText("Transpose", "places", "rows", Ints("perm", "1, 0")),
      NodeText("GatherND", "a rows", "values"), NodeText("Shape", "values", "count"),
      NodeText("Min", "count two", "k"), NodeText("TopK", "values k", "best _"), Output("best"));
  HONE_ASSERT_OK_AND_ASSIGN(const ImportedModel model, Read(graph));
  ASSERT_NE(model.tail, nullptr);
  HONE_ASSERT_OK_AND_ASSIGN(std::vector<Tensor> outputs,
                            Run(model, {{0.0, -5.0, 0.5, 3.0, 4.0, 1.0}}));
  EXPECT_THAT(Numbers(outputs[0]), ElementsAre(5, 4));
  HONE_ASSERT_OK_AND_ASSIGN(outputs, Run(model, {{0.0, -5.0, 0.5, 0.0, 0.0, 0.0}}));
  EXPECT_THAT(Numbers(outputs[0]), ElementsAre(5));
  HONE_ASSERT_OK_AND_ASSIGN(outputs, Run(model, {ir::Scalars(6, 0.0)}));
  EXPECT_THAT(Numbers(outputs[0]), IsEmpty());
}

TEST_F(HostTailTest, WhatIsKnownWhenTheModelIsReadIsNotComputedAgain) {
  const std::string graph = absl::StrCat(
      Input("x", kTailF32, "3"), NodeText("Shape", "x", "shape"),
      NodeText("ConstantOfShape", "shape", "zeros"), NodeText("NonZero", "zeros", "none"),
      NodeText("Relu", "x", "y"), NodeText("NonZero", "y", "places"),
      NodeText("Concat", "places none", "joined", Int("axis", 1)), Output("joined"));
  HONE_ASSERT_OK_AND_ASSIGN(const ImportedModel model, Read(graph));
  ASSERT_NE(model.tail, nullptr);
  EXPECT_THAT(model.graph.outputs, testing::SizeIs(1)) << "only y is computed";
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Run(model, {{1.0, -1.0, 2.0}}));
  EXPECT_THAT(Numbers(outputs[0]), ElementsAre(0, 2));
}

// The tail as a model of its own computes the same. It has a weight of a file beside the model, an
// output that the graph computes, and an output of which all is known when the model is read.
TEST_F(HostTailTest, TheTailIsAModelOfItsOwn) {
  std::ofstream(folder_ / "scale", std::ios::binary) << std::string("\0\0\0\x40", 4);  // 2.0
  const std::string scale =
      "initializer { name: 'scale' data_type: 1 dims: 1 data_location: EXTERNAL "
      "external_data { key: 'location' value: 'scale' } } ";
  const std::string graph = absl::StrCat(
      Input("x", kTailF32, "3"), scale, Initializer("one", kTailF32, "1", "float_data: 1"),
      NodeText("Add", "one one", "known"), NodeText("Relu", "x", "y"),
      NodeText("Compress", "y x_bits", "kept"), NodeText("Cast", "x", "x_bits", Int("to", 9)),
      NodeText("Mul", "kept scale", "scaled"), NodeText("Add", "scaled known", "moved"),
      Output("y"), Output("moved"), Output("known"));
  HONE_ASSERT_OK_AND_ASSIGN(const ImportedModel model, Read(graph));
  ASSERT_NE(model.tail, nullptr);
  const ir::Scalars x = {1.0, 0.0, 3.0};
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Run(model, {x}));
  EXPECT_THAT(Numbers(outputs[1]), ElementsAre(4, 8));
  HONE_ASSERT_OK_AND_ASSIGN(const std::string bytes, model.tail->ToModel(/*fixes_shapes=*/true));
  ::onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(bytes));
  EXPECT_EQ(proto.ir_version(), ModelOf("").ir_version());
  EXPECT_EQ(proto.graph().output_size(), 3);
  EXPECT_EQ(proto.graph().input_size(), 2) << "y and the elements of x as booleans";

  // For graphs of several sizes, the extents of the inputs are left open.
  HONE_ASSERT_OK_AND_ASSIGN(const std::string open, model.tail->ToModel(/*fixes_shapes=*/false));
  ASSERT_TRUE(proto.ParseFromString(open));
  for (const auto& input : proto.graph().input()) {
    EXPECT_EQ(input.type().tensor_type().shape().dim_size(), 1);
    EXPECT_FALSE(input.type().tensor_type().shape().dim(0).has_dim_value());
  }

  // Its only nodes run on the host again.
  std::filesystem::remove(folder_ / "scale");
  std::ofstream(path_, std::ios::binary) << bytes;
  HONE_ASSERT_OK_AND_ASSIGN(const ImportedModel own, ImportOnnxWithTail(path_));
  ASSERT_NE(own.tail, nullptr);
  EXPECT_THAT(own.graph.nodes, IsEmpty());
  std::vector<ir::Scalars> inputs;
  for (const graph::ValueId id : own.graph.inputs) {
    inputs.push_back(own.graph.value(id).name == "y" ? x : ir::Scalars{1.0, 0.0, 1.0});
  }
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> again, Run(own, inputs));
  ASSERT_EQ(again.size(), outputs.size());
  for (size_t o = 0; o < outputs.size(); ++o) EXPECT_EQ(Numbers(again[o]), Numbers(outputs[o]));
}

// Tensors of branches are in files, too, and an initializer is also an output.
TEST_F(HostTailTest, AModelOfItsOwnNeedsNoFiles) {
  const auto in_file = [](const std::string& name) {
    return Initializer(name, kTailF32, "1",
                       absl::StrCat("data_location: EXTERNAL external_data { key: 'location' "
                                    "value: '",
                                    name, "' }"));
  };
  const auto branch = [](const std::string& name, const std::string& graph) {
    return absl::StrCat("attribute { name: '", name, "' type: GRAPH g { name: 'b' ", graph,
                        Output("r"), " } } ");
  };
  for (const char* const name : {"outer", "inner"})
    std::ofstream(folder_ / name, std::ios::binary) << std::string("\0\0\0\x40", 4);  // 2.0
  HONE_ASSERT_OK_AND_ASSIGN(
      const ImportedModel model,
      Read(Input("x", kTailF32, "3") + in_file("outer") +
           Initializer("on", 9, "", "int32_data: 1") + NodeText("Relu", "x", "y") +
           NodeText("Cast", "x", "bits", Int("to", 9)) + NodeText("Compress", "y bits", "kept") +
           NodeText("If", "on", "z",
                    branch("then_branch", in_file("inner") + NodeText("Mul", "kept inner", "t") +
                                              NodeText("Add", "t outer", "r")) +
                        branch("else_branch", NodeText("Neg", "kept", "r"))) +
           Output("z") + Output("outer")));
  ASSERT_NE(model.tail, nullptr);
  HONE_ASSERT_OK_AND_ASSIGN(const std::string bytes, model.tail->ToModel(/*fixes_shapes=*/true));
  for (const char* const name : {"outer", "inner"}) std::filesystem::remove(folder_ / name);
  std::ofstream(path_, std::ios::binary) << bytes;
  HONE_ASSERT_OK_AND_ASSIGN(const ImportedModel own, ImportOnnxWithTail(path_));
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs,
                            Run(own, {{1.0, 0.0, 1.0}, {1.0, 5.0, 3.0}}));
  EXPECT_THAT(Numbers(outputs[0]), ElementsAre(4, 8));
  EXPECT_THAT(Numbers(outputs[1]), ElementsAre(2));
  ::onnx::ModelProto proto;
  ASSERT_TRUE(proto.ParseFromString(bytes));
  std::vector<std::string> names;
  for (const auto& tensor : proto.graph().initializer()) names.push_back(tensor.name());
  EXPECT_THAT(names, testing::UnorderedElementsAre("outer", "on"));
}

TEST_F(HostTailTest, OtherModelsHaveNone) {
  const std::string x = Input("x", kTailF32, "3");
  HONE_ASSERT_OK_AND_ASSIGN(const ImportedModel model,
                            Read(x + NodeText("Relu", "x", "y") + Output("y")));
  EXPECT_EQ(model.tail, nullptr);
  EXPECT_THAT(Read(Input("s", kTailI64, "2") + NodeText("ConstantOfShape", "s", "y") + Output("y")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("must be constant")));
  // A shape before the first such node depends on the elements of an input.
  EXPECT_THAT(
      Read(Input("s", kTailI64, "2") + NodeText("ConstantOfShape", "s", "f") +
           NodeText("NonZero", "f", "y") + Output("y")),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("node 'n_f' (ConstantOfShape)")));
}

TEST_F(HostTailTest, ANodeThatDoesNotFitFailsTheRun) {
  const std::string graph =
      absl::StrCat(Input("x", kTailF32, "3"), Initializer("shape", kTailI64, "1", "int64_data: 2"),
                   NodeText("NonZero", "x", "places"), NodeText("Reshape", "places shape", "two"),
                   Output("two"));
  HONE_ASSERT_OK_AND_ASSIGN(const ImportedModel model, Read(graph));
  HONE_ASSERT_OK_AND_ASSIGN(const std::vector<Tensor> outputs, Run(model, {{1.0, 0.0, 1.0}}));
  EXPECT_THAT(Numbers(outputs[0]), ElementsAre(0, 2));
  EXPECT_THAT(Run(model, {{1.0, 1.0, 1.0}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("node 'n_two' (Reshape)")));
}

}  // namespace
}  // namespace hone::onnx
