#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/ir/interpreter.h"
#include "common/ir/reference_workload.h"
#include "common/ir/workload_parser.h"
#include "tests/common/ir/interpret_element.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kEmbedding[] =
    "workload embedding\ninput T: f32[3, 2]\ninput I: i32[4] < 3\n"
    "output Y[i: 4, j: 2] = T[at(I[i]), j] + 0.5\n";

Workload ParseGather(absl::string_view text) {
  absl::StatusOr<Workload> workload = ParseWorkload(text);
  EXPECT_THAT(workload, IsOk());
  return *std::move(workload);
}

TEST(GatherTest, PrintsAndParsesBack) {
  const Workload w = ParseGather(kEmbedding);
  EXPECT_EQ(w.ToText(), kEmbedding);
  EXPECT_EQ(w.tensors[1].bound, 3);
  EXPECT_EQ(ParseGather(w.ToText()).StructuralDigest(), w.StructuralDigest());
}

TEST(GatherTest, TheDigestContainsTheBoundTheDimensionAndTheIndex) {
  const auto digest = [](absl::string_view bound, absl::string_view element) {
    return ParseGather(absl::StrCat("workload w\ninput T: f32[3, 3]\ninput I: i32[3]", bound,
                                    "\noutput Y[i: 3] = ", element, "\n"))
        .StructuralDigest();
  };
  const Digest plain = digest("", "T[at(I[i]), 0]");
  EXPECT_NE(plain, digest(" < 3", "T[at(I[i]), 0]"));
  EXPECT_NE(plain, digest("", "T[0, at(I[i])]"));
  EXPECT_NE(plain, digest("", "T[at(I[i] + 1), 0]"));
}

TEST(GatherTest, IndicesAreClampedIntoTheDimension) {
  const Workload w = ParseGather(kEmbedding);
  const std::vector<Values> inputs = {{0, 1, 10, 11, 20, 21}, {2, 0, -7, 9}};
  HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(w, inputs, 100));
  EXPECT_THAT(outputs[0], ElementsAre(20.5, 21.5, 0.5, 1.5, 0.5, 1.5, 20.5, 21.5));
}

TEST(GatherTest, AnIndexThatMayVaryHasNoBound) {
  const Workload w = ParseGather(
      "workload w\ninput T: f32[8]\ninput X: f32[4]\n"
      "output Y[i: 4] = T[at(i32(exp(X[i])))]\noutput Z[i: 4] = T[at(index(7 - i))]\n");
  const auto read = [](BufferId tensor, int64_t at) {
    return Scalar(tensor == 0 ? at + 0.5 : 0.0);
  };
  // exp(0) may be a little less than 1.
  const ElementValue risky = InterpretElement(w, 2, {1}, read);
  EXPECT_EQ(risky.value.real(), 1.5);
  EXPECT_TRUE(std::isinf(risky.rounding));
  const ElementValue sure = InterpretElement(w, 3, {1}, read);
  EXPECT_EQ(sure.value.real(), 6.5);
  EXPECT_EQ(sure.rounding, 0);
}

// The reference of a computed index needs the bounds of what the index is computed from.
TEST(GatherTest, ReferencesHaveTheBoundsOfComputedIndices) {
  for (const char* const stages :
       {"output R[i: 4, j: 2] = T[at(i32(floor(S[i]))), j]\n",
        "N[i: 4] = i32(floor(S[i]))\noutput R[i: 4, j: 2] = T[at(N[i]), j]\n"}) {
    const Workload w = ParseGather(absl::StrCat(
        "workload w\ninput A: f32[4, 8]\ninput T: f32[100, 2]\nS[i: 4] = sum(k: 8) A[i, k]\n",
        stages));
    HONE_ASSERT_OK_AND_ASSIGN(const Workload reference, ReferenceWorkload(w));
    // Sums of 8 and of 8.5: only the first may be computed as less than a whole number.
    std::vector<Values> inputs = {Values(32, 1.0), Values(200)};
    inputs[0][8] = 1.5;
    for (size_t e = 0; e < 200; ++e) inputs[1][e] = static_cast<double>(e);
    HONE_ASSERT_OK_AND_ASSIGN(const auto outputs, Interpret(reference, inputs, 100000));
    const std::vector<BufferId> ids = reference.Outputs();
    bool found = false;
    for (size_t o = 0; o < ids.size(); ++o) {
      const Values& values = outputs[o];
      const bool bounds = std::isinf(values[0]) && std::isinf(values[1]);
      found |= bounds && values[2] == 0 && values[3] == 0;
    }
    EXPECT_TRUE(found) << reference.ToText();
  }
}

TEST(GatherTest, ErrorsSayWhatToWrite) {
  const auto error = [](absl::string_view input, absl::string_view stage) {
    return std::string(
        ParseWorkload(absl::StrCat("workload w\ninput T: f32[8, 2]\n", input, "\n", stage, "\n"))
            .status()
            .message());
  };
  EXPECT_THAT(error("input I: i32[4]", "output Y[i: 4] = T[I[i], 0]"), HasSubstr("write at(…)"));
  EXPECT_THAT(error("input I: u8[4]", "output Y[i: 4] = T[at(I[i]), 0]"),
              HasSubstr("a computed index is i32 or i64, not u8"));
  EXPECT_THAT(error("input I: i32[4]", "output Y[i: 4] = T[at(I[i]), at(I[i])]"),
              HasSubstr("only one index"));
  EXPECT_THAT(error("input I: i32[4]", "output Y[i: 4] = T[at(I[i])]"),
              HasSubstr("has 1 index here"));
  EXPECT_THAT(error("input I: i32[4]", "S[k: 8] = T[k, 0] * 2.0\noutput Y[i: 4] = S[at(I[i])]"),
              HasSubstr("which only inputs allow"));
  EXPECT_THAT(error("input I: i32[4]", "output Y[i: 4] = T[at(I[i]) + 1, 0]"),
              HasSubstr("as in at(x + 1)"));
  EXPECT_THAT(error("input I: i32[4]", "output Y[i: 4] = T[2 * at(I[i]), 0]"),
              HasSubstr("as in at(x + 1)"));
  EXPECT_THAT(error("input I: i32[4] < 0", "output Y[i: 4] = I[i]"),
              HasSubstr("bound 0 is not between 1 and"));
  EXPECT_THAT(error("input I: f32[4] < 8", "output Y[i: 4] = T[i, 0] + I[i]"),
              HasSubstr("8 is not a bound of f32"));
  EXPECT_THAT(error("input I: u8[4] < 300", "output Y[i: 4] = T[i, 0] + f32(I[i])"),
              HasSubstr("300 is not a bound of u8"));
}

}  // namespace
}  // namespace hone::ir
