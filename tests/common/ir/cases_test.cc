#include "common/ir/cases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/ir/arithmetic.h"
#include "common/ir/expr.h"
#include "common/ir/workload_parser.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Workload ParseCase(absl::string_view text) {
  absl::StatusOr<Workload> workload = ParseWorkload(text);
  EXPECT_THAT(workload, IsOk());
  return *std::move(workload);
}

std::vector<Case> CasesOfStage(Workload& workload, size_t stage = 0) {
  auto cases = CasesOf(workload.pool, workload.atoms, workload.stages[stage].values);
  EXPECT_TRUE(cases.has_value());
  return *std::move(cases);
}

// "0 <= i - 1 < 4: A[i - 1]".
std::vector<std::string> Texts(const Workload& workload, const std::vector<Case>& cases) {
  std::vector<std::string> texts;
  for (const Case& at : cases) {
    const auto condition = [&](std::string* out, const Condition& c) {
      absl::StrAppend(out, "0 <= ", workload.atoms.ToString(c.index), " < ", c.extent);
    };
    texts.push_back(
        absl::StrCat(absl::StrJoin(at.conditions, ", ", condition), ": ",
                     PrintExpr(workload.pool, workload.atoms, at.values[0],
                               [&](BufferId id) { return workload.tensors[id].name; })));
  }
  return texts;
}

TEST(CasesTest, APaddedRowHasThreeCases) {
  Workload w = ParseCase(
      "workload pad\ninput A: f32[4]\n"
      "output P[i: 6] = (A[i - 1] where 0 <= i - 1 < 4 else 0.5) * 2.0\n");
  EXPECT_THAT(Texts(w, CasesOfStage(w)),
              ElementsAre("0 <= i - 1 < 4: A[i - 1] * 2.0", "0 <= -i < 1: 0.5 * 2.0",
                          "0 <= i - 1 < 5, 0 <= i - 5 < 1: 0.5 * 2.0"));
}

TEST(CasesTest, ConditionsThatAreDecidedDivideNothing) {
  Workload w = ParseCase(
      "workload twice\ninput A: f32[8]\n"
      "output B[i: 8] = (A[i] where i < 4 else 1.0) + (A[i - 4] where 4 <= i else A[i + 4]) +\n"
      " (2.0 where i < 6 else A[0])\n");
  EXPECT_THAT(
      Texts(w, CasesOfStage(w)),
      ElementsAre("0 <= -i + 3 < 4: A[i] + A[i + 4] + 2.0", "0 <= i - 4 < 2: 1.0 + A[i - 4] + 2.0",
                  "0 <= i - 4 < 4, 0 <= i - 6 < 2: 1.0 + A[i - 4] + A[0]"));
}

TEST(CasesTest, ExactlyOneCaseHoldsAtEachPoint) {
  Workload w = ParseCase(
      "workload many\ninput A: f32[9, 9]\n"
      "output B[i: 9, j: 9] = ((A[i - 1, j] where 1 <= i, j <= i else 2.0) where i + j < 11, 2 <= "
      "j else\n (A[i, j + 3] where j + 3 < 9 else -1.0))\n");
  const std::vector<Case> cases = CasesOfStage(w);
  EXPECT_GE(cases.size(), 5);
  const Stage& stage = w.stages[0];
  std::vector<int64_t> vars(w.atoms.size());
  for (int64_t point = 0; point < 81; ++point) {
    vars[stage.spatial[0].var] = point / 9;
    vars[stage.spatial[1].var] = point % 9;
    const auto load = [&](const Expr& expr, int64_t) -> absl::StatusOr<Scalar> {
      int64_t offset = 0;
      for (const Index& index : w.pool.IndicesOf(expr)) {
        const int64_t value = w.atoms.Evaluate(index, vars);
        EXPECT_GE(value, 0);
        EXPECT_LT(value, 9);
        offset = offset * 9 + value;
      }
      return Scalar(offset);
    };
    const auto value = [&](ExprId id) { return Evaluate(w.pool, w.atoms, vars, id, load).value(); };
    int holding = 0;
    for (const Case& at : cases) {
      if (!std::all_of(at.conditions.begin(), at.conditions.end(), [&](const Condition& c) {
            const int64_t index = w.atoms.Evaluate(c.index, vars);
            return index >= 0 && index < c.extent;
          })) {
        continue;
      }
      ++holding;
      EXPECT_EQ(value(at.values[0]), value(stage.values[0])) << point;
    }
    EXPECT_EQ(holding, 1) << point;
  }
}

TEST(CasesTest, TooManyCasesAreRefused) {
  std::string text = "workload many\ninput A: f32[40]\noutput B[i: 40] = A[i]";
  for (int i = 1; i < 38; ++i)
    absl::StrAppend(&text, " + (A[", i, "] where ", i, " <= i else 0.0)");
  EXPECT_THAT(std::string(ParseWorkload(text).status().message()),
              HasSubstr("have more than 32 cases"));
}

// Without an end at the contradiction, each of the other guarded values would double the parts.
TEST(CasesTest, PointsThatContradictEachOtherAreNotDivided) {
  std::string text =
      "workload many\ninput A: f32[4]\noutput B[i: 268435456] = (A[0] where i < 2, 5 <= i else "
      "1.0)";
  for (int bit = 0; bit < 28; ++bit)
    absl::StrAppend(&text, " + (A[1] where i / ", 1 << bit, " % 2 == 1 else 0.0)");
  EXPECT_THAT(std::string(ParseWorkload(text).status().message()),
              HasSubstr("have more than 32 cases"));
}

TEST(GuardedValueTest, PrintsAndParsesBack) {
  const std::string text =
      "workload guarded\ninput A: f32[4, 8]\ninput B: f32[4, 8]\n"
      "P[i: 6, j: 8] = (A[i - 1, j] where 0 <= i - 1 < 4 else 0.0)\n"
      "output C[i: 6, j: 16] = (P[i, j] * 2.0 where 0 <= -j + 7 else (B[i, j - 8] where 0 <= -i + "
      "3 "
      "else 1.0))\n";
  const Workload w = ParseCase(text);
  EXPECT_EQ(w.ToText(), text);
  EXPECT_EQ(ParseCase(w.ToText()).StructuralDigest(), w.StructuralDigest());
}

TEST(GuardedValueTest, ErrorsSayWhatToWrite) {
  const auto error = [](absl::string_view stage) {
    return std::string(ParseWorkload(absl::StrCat("workload w\ninput A: f32[4]\n", stage, "\n"))
                           .status()
                           .message());
  };
  EXPECT_THAT(error("output B[i: 6] = A[i - 1]"), HasSubstr("where 0 <= i - 1 < 4 else 0"));
  EXPECT_THAT(error("output B[i: 6] = (A[i - 1] where 0 <= i < 4 else 0.0)"),
              HasSubstr("runs from -1 to 2, but the extent is 4"));
  EXPECT_THAT(error("output B[i: 6] = A[i - 1] where 0 <= i - 1 < 4 else 0.0"),
              HasSubstr("in parentheses"));
  EXPECT_THAT(error("output B[i: 6] = (A[i - 1] where 0 <= i - 1 < 4)"), HasSubstr("'else'"));
  EXPECT_THAT(error("output B[i: 6] = (A[i - 1] where 1 <= i and i < 5 else 0.0)"),
              HasSubstr("guards are separated by ','"));
  EXPECT_THAT(error("output B[i: 6] = (A[i - 1] where 0 <= i - 1 < 4 else i32(0))"),
              HasSubstr("operands have dtypes f32 and i32"));
  EXPECT_THAT(error("output B[u: 1] = sum(i: 6) (A[i - 1] where 0 <= i - 1 < 4 else 0.0)"),
              HasSubstr("guard the reduction instead"));
}

}  // namespace
}  // namespace hone::ir
