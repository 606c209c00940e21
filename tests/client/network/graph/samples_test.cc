#include "client/network/graph/samples.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/strings/substitute.h"
#include "client/network/onnx/import.h"
#include "common/ir/workload_parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/network/onnx/model_text.h"
#include "tests/client/network/onnx/open_models.h"
#include "tests/status.h"

namespace hone::graph {
namespace {

using ::hone::onnx::Initializer;
using ::hone::onnx::Int;
using ::hone::onnx::Ints;
using ::hone::onnx::NodeText;
using ::testing::HasSubstr;

constexpr int kF32 = 1, kI64 = 7;

// Whether values from 2 to 3 may be padded to 4; the error says why not.
absl::Status Check(const std::string& text, const std::string& dimension = "N") {
  const auto import = [&](int64_t size) {
    std::map<std::string, std::vector<int64_t>> shapes;
    if (dimension != "N") shapes["N"] = {3};
    shapes[dimension] = {size};
    return onnx::ImportOnnxBytes(onnx::BytesOf(text), "", {.shapes = shapes});
  };
  absl::StatusOr<Graph> graph = import(4);
  if (!graph.ok()) return graph.status();
  SampleAxes axes;
  for (const int64_t size : {2, 3}) {
    const absl::StatusOr<Graph> other = import(size);
    if (!other.ok()) return other.status();
    const auto compared = CompareSamples(*graph, 4, *other, size);
    if (!compared.ok()) return compared.status();
    axes = *compared;
  }
  return CheckSamplesAreIndependent(*graph, 4, axes).status();
}

std::string X(const std::string& shape = "N, 6") { return onnx::Input("x", kF32, shape); }

TEST(SamplesTest, NetworksOfIndependentSamples) {
  EXPECT_THAT(Check(onnx::OpenMlp()), IsOk());
  EXPECT_THAT(Check(onnx::OpenConvolutions()), IsOk());
  EXPECT_THAT(Check(onnx::OpenAttention()), IsOk());
}

TEST(SamplesTest, AttentionMixesItsSequence) {
  EXPECT_THAT(Check(onnx::OpenAttention("S"), "S"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may mix the samples")));
}

// Rows behind a causal mask do not change those before them.
TEST(SamplesTest, CausalAttention) {
  const auto number = [](const std::string& name, const std::string& value) {
    return Initializer(name, kF32, "", "float_data: " + value);
  };
  // A mask that is added, and one that shows.
  const std::string where = NodeText("Where", "hidden low zero", "m") + number("zero", "0"),
                    added = NodeText("Add", "scores m", "masked"),
                    shows = NodeText("Not", "hidden", "shown") +
                            NodeText("Where", "shown scores low", "masked"),
                    half = number("half", "0.5") + NodeText("Mul", "scores half", "scaled") +
                           NodeText("Where", "hidden low scaled", "masked");
  const std::string low = number("low", "-1e30"), high = number("low", "-10000");
  EXPECT_THAT(Check(onnx::OpenCausalAttention()), IsOk());
  EXPECT_THAT(Check(onnx::OpenCausalAttention(low + where + added)), IsOk());
  EXPECT_THAT(Check(onnx::OpenCausalAttention(low + shows)), IsOk());
  EXPECT_THAT(Check(onnx::OpenCausalAttention(low + half)), IsOk());

  // A mask that does not hide for sure; one of other columns, one that hides its own column, too,
  // and none of the scores.
  for (const std::string& wrong :
       {high + where + added, high + shows, low + NodeText("Where", "hidden scores low", "masked"),
        low + NodeText("Transpose", "hidden", "before") +
            NodeText("Where", "before low scores", "masked"),
        low + NodeText("Or", "hidden hidden", "h") + NodeText("Where", "h scores scores", "masked"),
        low + Initializer("all", 9, "", "int32_data: 1") + NodeText("Or", "hidden all", "h") +
            NodeText("Where", "h low scores", "masked")}) {
    SCOPED_TRACE(wrong);
    EXPECT_THAT(Check(onnx::OpenCausalAttention(wrong)),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may mix the samples")));
  }
}

// A mask for padding that is an input must show the first position, or else it may hide all that a
// row sees, whose shares then depend on the scores that the causal mask hides. One for each row
// might hide a whole row. A constant cannot depend on the padding.
TEST(SamplesTest, MasksBeforeTheCausalMask) {
  std::string numbers = "1";
  for (int i = 1; i < 16; ++i) numbers += ", 1";
  const std::string low = Initializer("low", kF32, "", "float_data: -1e30"),
                    causal = NodeText("Add", "scores m", "seen") +
                             NodeText("Where", "hidden low seen", "masked");
  EXPECT_THAT(Check(onnx::OpenCausalAttention(
                  low + Initializer("table", kF32, "16", "float_data: [" + numbers + "]") +
                  NodeText("Slice", "table from n", "m") + causal)),
              IsOk());
  const auto with_input = [&](const std::string& shape) {
    return Check(onnx::OpenCausalAttention(low + onnx::Input("m", kF32, shape) + causal));
  };
  EXPECT_THAT(with_input("1, 1, 1, N"), IsOk());
  EXPECT_THAT(with_input("1, 1, N, 1"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may mix the samples")));
}

// If a constant lowers all scores that a row sees, what the causal mask hides has shares, too.
TEST(SamplesTest, ScoresThatAConstantLowersBeforeTheCausalMask) {
  const auto lowered = [](const std::string& number) {
    return Check(onnx::OpenCausalAttention(Initializer("low", kF32, "", "float_data: -1e30") +
                                           Initializer("shift", kF32, "", "float_data: " + number) +
                                           NodeText("Add", "scores shift", "seen") +
                                           NodeText("Where", "hidden low seen", "masked")));
  };
  EXPECT_THAT(lowered("-1000"), IsOk());
  EXPECT_THAT(lowered("-1e31"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may mix the samples")));
}

// A table of positions has other elements for each sample, but the same ones for each size.
TEST(SamplesTest, ConstantsThatBeginWithTheSameElements) {
  const std::string table = Initializer("table", kF32, "5", "float_data: [5, 4, 3, 2, 1]") +
                            Initializer("zero", kI64, "1", "int64_data: [0]") +
                            Initializer("end", kI64, "1", "int64_data: [5]") +
                            NodeText("Shape", "x", "s") + NodeText("Gather", "s zero", "n");
  const std::string first = table + NodeText("Slice", "table zero n", "part"),
                    last = table + NodeText("Sub", "end n", "from") +
                           NodeText("Slice", "table from end", "part"),
                    sum = NodeText("ReduceSum", "part zero", "t") + NodeText("Mul", "x t", "y"),
                    add = NodeText("Add", "x part", "y");
  EXPECT_THAT(Check(X("N") + first + add + onnx::Output("y")), IsOk());
  // The last elements depend on the size, and so does the sum.
  EXPECT_FALSE(Check(X("N") + last + add + onnx::Output("y")).ok());
  EXPECT_FALSE(Check(X("N") + first + sum + onnx::Output("y")).ok());
}

TEST(SamplesTest, AnOpenDimensionInTheMiddle) {
  EXPECT_THAT(Check(X("2, N, 6") + NodeText("Relu", "x", "r") +
                    NodeText("Softmax", "r", "y", Int("axis", 2)) + onnx::Output("y")),
              IsOk());
}

TEST(SamplesTest, ATransposedBatchStaysABatch) {
  EXPECT_THAT(Check(X("N, 2, 6") + NodeText("Transpose", "x", "t", Ints("perm", "1, 0, 2")) +
                    NodeText("Relu", "t", "r") +
                    NodeText("Transpose", "r", "y", Ints("perm", "1, 0, 2")) + onnx::Output("y")),
              IsOk());
}

TEST(SamplesTest, SumsOverTheBatchMix) {
  EXPECT_THAT(Check(X() + NodeText("ReduceMean", "x", "m", Ints("axes", "0")) +
                    NodeText("Sub", "x m", "y") + onnx::Output("y")),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may mix the samples")));
}

// A sum over columns of which there are as many as samples; padding would add columns to it.
TEST(SamplesTest, SamplesThatGrowWithTheirNumberMix) {
  const std::string number = Initializer("zero", kI64, "1", "int64_data: [0]") +
                             Initializer("one", kI64, "1", "int64_data: [1]") +
                             NodeText("Shape", "x", "s") + NodeText("Gather", "s zero", "n") +
                             NodeText("Concat", "n n", "n2", Int("axis", 0));
  const std::string sum = NodeText("ReduceSum", "square one", "y") + onnx::Output("y");
  EXPECT_THAT(Check(X() + number + NodeText("Slice", "x zero n one", "square") + sum),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may mix the samples")));
  EXPECT_THAT(Check(X("N, 1") + number + NodeText("Expand", "x n2", "square") + sum),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("may mix the samples")));
}

TEST(SamplesTest, ASoftmaxOverTheBatchMixes) {
  EXPECT_FALSE(Check(X() + NodeText("Softmax", "x", "y", Int("axis", 0)) + onnx::Output("y")).ok());
}

TEST(SamplesTest, AReversedBatchMixes) {
  EXPECT_FALSE(Check(X() + Initializer("from", kI64, "1", "int64_data: [-1]") +
                     Initializer("to", kI64, "1", "int64_data: [-1000]") +
                     Initializer("axis", kI64, "1", "int64_data: [0]") +
                     Initializer("by", kI64, "1", "int64_data: [-1]") +
                     NodeText("Slice", "x from to axis by", "y") + onnx::Output("y"))
                   .ok());
}

// The elements of a merged dimension that has the batch last belong to no contiguous sample.
TEST(SamplesTest, ABatchBehindAnotherDimensionOfAMergedOneIsRefused) {
  EXPECT_FALSE(Check(X("N, 2, 6") + Initializer("rows", kI64, "2", "int64_data: [-1, 6]") +
                     NodeText("Transpose", "x", "t", Ints("perm", "1, 0, 2")) +
                     NodeText("Reshape", "t rows", "y") + onnx::Output("y"))
                   .ok());
}

TEST(SamplesTest, ValuesThatDependOnTheSizeAreRefused) {
  // y = x * N
  EXPECT_THAT(
      Check(X() + Initializer("zero", kI64, "1", "int64_data: [0]") + NodeText("Shape", "x", "s") +
            NodeText("Gather", "s zero", "n") + NodeText("Cast", "n", "f", Int("to", kF32)) +
            NodeText("Mul", "x f", "y") + onnx::Output("y")),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("depends on the size")));
  EXPECT_THAT(
      Check(X() + NodeText("Relu", "x", "y") + NodeText("Shape", "x", "s") + onnx::Output("y") +
            onnx::Output("s")),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("output 's' depends on the size")));
}

// A scale from a fixed extent, as exporters of attention write it, is the same for every size.
TEST(SamplesTest, ValuesThatDependOnFixedExtentsAreFine) {
  EXPECT_THAT(
      Check(X() + Initializer("one", kI64, "1", "int64_data: [1]") + NodeText("Shape", "x", "s") +
            NodeText("Gather", "s one", "n") + NodeText("Cast", "n", "f", Int("to", kF32)) +
            NodeText("Sqrt", "f", "r") + NodeText("Div", "x r", "y") + onnx::Output("y")),
      IsOk());
}

// Such as the class token of a vision transformer, which is repeated for each sample.
TEST(SamplesTest, AConstantThatIsRepeatedForEachSample) {
  EXPECT_THAT(Check(X("N, 2, 3") + Initializer("token", kF32, "1, 1, 3", "float_data: [1, 2, 3]") +
                    Initializer("zero", kI64, "1", "int64_data: [0]") +
                    Initializer("rest", kI64, "2", "int64_data: [1, 3]") +
                    NodeText("Shape", "x", "s") + NodeText("Gather", "s zero", "n") +
                    NodeText("Concat", "n rest", "wanted", Int("axis", 0)) +
                    NodeText("Expand", "token wanted", "tokens") +
                    NodeText("Concat", "tokens x", "y", Int("axis", 1)) + onnx::Output("y")),
              IsOk());
}

// Padding behind the samples would not change them, but only independent samples are proven.
TEST(SamplesTest, CumulativeSumsAreRefused) {
  EXPECT_FALSE(Check(X() + Initializer("axis", kI64, "1", "int64_data: [0]") +
                     NodeText("CumSum", "x axis", "y") + onnx::Output("y"))
                   .ok());
}

// The first sample is never padding, so all may read it, as a pooler reads the first token.
TEST(SamplesTest, TheFirstSampleMayBeReadByAll) {
  const std::string first = Initializer("at", kI64, "", "int64_data: 0"),
                    second = Initializer("at", kI64, "", "int64_data: 1"),
                    read = NodeText("Gather", "x at", "p", Int("axis", 1));
  const std::string pooled = NodeText("Tanh", "p", "y") + onnx::Output("y"),
                    added = Initializer("axes", kI64, "1", "int64_data: [1]") +
                            NodeText("Unsqueeze", "p axes", "u") + NodeText("Add", "x u", "y") +
                            onnx::Output("y");
  for (const std::string& use : {pooled, added}) {
    EXPECT_THAT(Check(X("2, N, 6") + first + read + use), IsOk());
    EXPECT_FALSE(Check(X("2, N, 6") + second + read + use).ok());
  }
}

// A constant that hides by being low is not low as a whole number, whose type has bounds.
TEST(SamplesTest, LowScoresThatAreCastToABoundedTypeHideNothing) {
  const std::string low = Initializer("low", kF32, "", "float_data: -1e30") +
                          NodeText("Where", "hidden low scores", "w");
  const auto through = [&](int type) {
    return onnx::OpenCausalAttention(low + NodeText("Cast", "w", "c", Int("to", type)) +
                                     NodeText("Cast", "c", "masked", Int("to", kF32)));
  };
  EXPECT_THAT(Check(through(/*f64*/ 11)), IsOk());
  EXPECT_FALSE(Check(through(kI64)).ok());
  EXPECT_FALSE(Check(through(/*bool*/ 9)).ok());
}

// Sums over as many terms as samples, in an operator, whose stages have no values of a graph.
TEST(SamplesTest, WorkloadsWithReductionsThatGrowDiffer) {
  const auto parse = [](absl::string_view text, int n) {
    return ir::ParseWorkload(absl::Substitute(text, n));
  };
  for (const auto& [text, same] : std::vector<std::pair<std::string, bool>>{
           {"workload w\ninput X: f32[$0, 8]\noutput Y[i: $0] = sum(k: 8) X[i, k]\n", true},
           {"workload w\ninput X: f32[$0]\noutput Y[i: $0] = sum(k: $0) X[i]\n", false},
           {"workload w\ninput X: f32[$0]\nT[i: $0, j: $0] = X[i] * 2.0\n"
            "output Y[i: $0] = sum(k: $0) T[i, k]\n",
            false},
           {"workload w\ninput X: f32[$0]\n"
            "output Y[i: $0] = sum(k: 8 where 0 <= k < $0) X[i]\n",
            false}}) {
    SCOPED_TRACE(text);
    HONE_ASSERT_OK_AND_ASSIGN(const ir::Workload a, parse(text, 4));
    HONE_ASSERT_OK_AND_ASSIGN(const ir::Workload b, parse(text, 3));
    EXPECT_EQ(DifferOnlyInExtents(a, b), same);
  }
}

TEST(SamplesTest, ATensorWithTwoOpenDimensionsIsRefused) {
  EXPECT_THAT(
      Check(onnx::Input("x", kF32, "N, N") + NodeText("Relu", "x", "y") + onnx::Output("y")),
      StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("two dimensions")));
}

}  // namespace
}  // namespace hone::graph
