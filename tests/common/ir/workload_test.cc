#include "common/ir/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "common/ir/workload_parser.h"
#include "common/operator/operator.h"
#include "tests/status.h"

namespace hone::ir {
namespace {

using ::testing::HasSubstr;

Workload ParseText(const std::string& text) {
  auto workload = ParseWorkload(text);
  EXPECT_THAT(workload, IsOk());
  return std::move(workload).value();
}

Workload Operator(const std::string& line) {
  std::vector<std::string> words = absl::StrSplit(line, ' ');
  const std::string name = words[0];
  words.erase(words.begin());
  auto workload = op::BuildWorkload(name, words);
  EXPECT_THAT(workload, IsOk());
  return std::move(workload).value();
}

// Records, artifacts and best results are stored under these digests: no refactoring or platform
// may change them. An intended change needs a new version word in StructuralDigest and a migration
// of the store.
TEST(StructuralDigestTest, IsStable) {
  const std::pair<const char*, const char*> kGolden[] = {
      {"matmul m=1024 n=1024 k=1024", "e34187b808ccca13e8838150b48238bd"},
      {"matmul m=1024 n=1024 k=1024 dtype=bf16", "465ecc4662ee92f8d8f26d39e42dadab"},
      {"batch_matmul b=8 m=128 n=64 k=32", "01662020389f5c7f08e38da725426c73"},
      {"conv2d n=1 h=14 w=14 ci=256 co=256 k=3 p=1", "e007016bcbe554e4efa23d9215cdf9b1"},
      {"conv2d n=2 h=28 w=30 ci=8 co=16 k=3 s=2", "5562dc9260abe933e9a4dfa9791c2cf9"},
      {"dense_relu m=32 n=1000 k=512", "f4dd2a4e59a12f9f9d14f490311d5d14"},
  };
  for (const auto& [line, hex] : kGolden)
    EXPECT_EQ(Operator(line).StructuralDigest().ToHex(), hex) << line;
}

TEST(StructuralDigestTest, NamesDoNotMatter) {
  const Workload a = ParseText(
      "workload a\ninput A: f32[4, 6]\ninput B: f32[6, 8] constant\n"
      "C[i: 4, j: 8] = sum(k: 6 where 0 <= i + k - 1 < 5) A[i, k] * B[k, j]\noutput D[i: 4, j: 8] "
      "= max(C[i, j], 0.0)\n");
  const Workload b = ParseText(
      "workload b\ninput x: f32[4, 6]\ninput y: f32[6, 8] constant\n"
      "t[u: 4, v: 8] = sum(w: 6 where 0 <= w + u - 1 < 5) x[u, w] * y[w, v]\noutput z[q: 4, r: 8] "
      "= max(t[q, r], 0.0)\n");
  EXPECT_EQ(a.StructuralDigest(), b.StructuralDigest());
}

TEST(StructuralDigestTest, DependsOnEverythingElse) {
  const std::string text =
      "workload a\ninput A: f32[4, 6]\ninput B: f32[6, 8]\n"
      "C[i: 4, j: 8] = sum(k: 6 where 0 <= i + k - 1 < 5) A[i, k] * B[k, j]\noutput D[i: 4, j: 8] "
      "= max(C[i, j], 0.0)\n";
  const Digest digest = ParseText(text).StructuralDigest();
  const std::pair<const char*, const char*> kChanges[] = {
      {"input B: f32[6, 8]", "input B: f32[6, 8] constant"},
      {"input B: f32[6, 8]", "input B: f32[7, 8]"},
      {"i + k - 1 < 5", "i + k - 1 < 6"},
      {"i + k - 1", "i + k"},
      {"sum(", "max("},
      {"* B", "+ B"},
      {"A[i, k]", "A[k % 4, k]"},
      {", 0.0", ", 1.0"},
      {"\noutput D", "\noutput D[i: 4, j: 8] = C[i, j]\noutput E"},
  };
  for (const auto& [from, to] : kChanges) {
    std::string changed = text;
    changed.replace(changed.find(from), std::string(from).size(), to);
    EXPECT_NE(ParseText(changed).StructuralDigest(), digest) << to;
  }
}

TEST(FlopCountTest, CountsMultiplicationsAndAdditions) {
  EXPECT_EQ(FlopCount(Operator("matmul m=10 n=20 k=30")), 2.0 * 10 * 20 * 30);
  EXPECT_EQ(FlopCount(Operator("dense_relu m=10 n=20 k=30")), 2.0 * 10 * 20 * 30 + 10 * 20);
  EXPECT_EQ(FlopCount(Operator("conv2d n=2 h=8 w=9 ci=3 co=5 k=3 s=2")),
            2.0 * 2 * 3 * 4 * 5 * 3 * 9);
}

// Padded taps do not count: there are 14 + 13 + 13 rows, times as many columns.
TEST(FlopCountTest, PaddedTapsDoNotCount) {
  EXPECT_EQ(FlopCount(Operator("conv2d n=1 h=14 w=14 ci=256 co=256 k=3 p=1")),
            2.0 * 40 * 40 * 256 * 256);
  EXPECT_EQ(FlopCount(Operator("conv2d n=1 h=5 w=4 ci=1 co=1 k=3 p=2")), 2.0 * 15 * 12);
  EXPECT_EQ(
      FlopCount(ParseText(
          "workload w\ninput A: f32[8]\noutput S[u: 1] = sum(k: 8 where 0 <= k - 2 < 4) A[k]\n")),
      4);
  EXPECT_EQ(FlopCount(ParseText(
                "workload w\ninput A: f32[8]\noutput S[u: 1] = sum(k: 8 where 0 <= 9 < 4) A[k]\n")),
            0);
}

// One branch of a select is computed; a select on the position alone costs nothing at run time.
TEST(FlopCountTest, GuardsOverManyPointsAreCountedByIntervals) {
  // 0 ≤ i + k − 5 < 2000 and 0 ≤ 7 − 2k + i < 3000, counted here point by point.
  int64_t points = 0;
  for (int64_t i = 0; i < 2000; ++i) {
    for (int64_t k = 0; k < 2000; ++k)
      points += i + k - 5 >= 0 && i + k - 5 < 2000 && 7 - 2 * k + i >= 0 && 7 - 2 * k + i < 3000;
  }
  EXPECT_EQ(FlopCount(ParseText(
                "workload w\ninput A: f32[2000]\n"
                "output S[i: 2000] = sum(k: 2000 where 0 <= i + k - 5 < 2000, 0 <= 7 - 2*k + i < "
                "3000) A[k]\n")),
            static_cast<double>(points));
}

TEST(FlopCountTest, ExpensiveCountIsAnUpperBound) {
  std::string text = "workload w\ninput A: f32[300, 300, 300]\n";
  for (int s = 0; s < 200; ++s) {
    absl::StrAppend(&text, "output S", s, "[i", s, ": 300] = sum(j", s, ": 300, k", s,
                    ": 300 where 0 <= i", s, " + j", s, " + k", s, " - 5 < 300) A[i", s, ", j", s,
                    ", k", s, "]\n");
  }
  EXPECT_LE(FlopCount(ParseText(text)), 200.0 * 300 * 300 * 300);
}

TEST(FlopCountTest, ASelectCountsOneBranch) {
  const auto flops = [](const std::string& value) {
    return FlopCount(ParseText("workload w\ninput A: f32[8]\noutput B[i: 8] = " + value + "\n"));
  };
  EXPECT_EQ(flops("select(index(i) == 2, A[i] * 2.0 + 1.0, A[i] + 1.0)"), 8 * 2);
  EXPECT_EQ(
      flops("select(index(i) == 2, A[i], select(index(i) < 4, A[i] + 1.0, A[i] * A[i] * A[i]))"),
      8 * 2);
  EXPECT_EQ(flops("select(A[i] < 0.0, A[i] * 2.0 + 1.0, A[i] + 1.0)"), 8 * 4);
  EXPECT_EQ(flops("select(A[i] + 1.0 < 0.0, A[i], 0.0)"), 8 * 3);
}

TEST(WorkloadBuilderTest, ValidatesTheBuiltWorkload) {
  WorkloadBuilder builder("w");
  const auto a = builder.Input("A", DType::kF32, {4});
  const auto i = builder.NewAxis("i", 4);
  builder.Output(builder.Map("B", {i}, builder.Load(a, {Index::Of(i.var) + 1})));
  const auto workload = std::move(builder).Build();
  EXPECT_THAT(std::string(workload.status().message()),
              HasSubstr("index 0 of A[i + 1] runs from 1 to 4, but the extent is 4"));
  WorkloadBuilder empty("w");
  EXPECT_THAT(std::string(std::move(empty).Build().status().message()), HasSubstr("has no stage"));
}

// The text of a built workload parses back to the same computation, including constants of every
// type.
TEST(WorkloadBuilderTest, TextKeepsTheDTypesOfConstants) {
  for (int d = 0; d <= static_cast<int>(DType::kF8E5M2); ++d) {
    const auto dtype = static_cast<DType>(d);
    if (dtype == DType::kBool) continue;
    WorkloadBuilder builder("w");
    const auto a = builder.Input("A", dtype, {4});
    ExprPool& pool = builder.pool();
    const auto make = [&](const char* name, auto&& value) {
      const auto i = builder.NewAxis("i", 4);
      builder.Output(builder.Map(name, {i}, value(builder.Load(a, {Index::Of(i.var)}))));
    };
    make("B", [&](ExprId) { return pool.Const(dtype, 3); });
    make("C", [&](ExprId x) { return pool.Binary(Op::kSub, x, pool.Const(dtype, 3)); });
    make("D", [&](ExprId x) {
      return pool.Binary(Op::kMul,
                         pool.Binary(Op::kAdd, pool.Const(dtype, 1), pool.Const(dtype, 2)), x);
    });
    make("E", [&](ExprId x) {
      return pool.Select(pool.Binary(Op::kLess, pool.Const(dtype, 0), x), pool.Const(dtype, 1),
                         pool.Const(dtype, 2));
    });
    make("F", [&](ExprId x) {
      return pool.Unary(Op::kNeg,
                        pool.Binary(Op::kMin, pool.Unary(Op::kAbs, x), pool.Const(dtype, 5)));
    });
    HONE_ASSERT_OK_AND_ASSIGN(const auto workload, std::move(builder).Build());
    const auto read = ParseWorkload(workload.ToText());
    ASSERT_THAT(read, IsOk()) << workload.ToText();
    EXPECT_EQ(read->StructuralDigest(), workload.StructuralDigest()) << workload.ToText();
    EXPECT_EQ(read->ToText(), workload.ToText());
  }
}

// Values of a stage Z[i: 61] with X: f32[64] and Y: f32[40], and the largest number in place of #
// for which all reads are inside.
TEST(GuardTest, AGuardBoundsEveryIndexThatFollowsFromIt) {
  const std::pair<const char*, int64_t> kValues[] = {
      {"(X[3*i] where i < # else 0.0)", 22},
      {"(X[2*i + 1] where i < # else 0.0)", 32},
      {"(Y[i / 2 + 20] where i < # else X[i])", 40},
      {"(Y[i] where 3*i < # else 0.0)", 120},
      {"(X[63 - 3*i] where i <= # else 0.0)", 21},
      {"(X[2*i] where i / 4 < # else 0.0)", 8},
      {"(0.0 where # <= i else X[3*i])", 22},
      {"(X[i] where i < 22 else Y[i + # - 61])", 40},
      {"(X[i % 32 * 4] where i % 32 < # else 0.0)", 16},
      {"(X[i + #] where 20 <= i, i < 24, i % 2 == 0 else Y[0])", 41},
      {"sum(k: 40 where k < #) X[3*k]", 22},
      {"sum(k: 40 where i + k < #) X[2*i + 2*k]", 32},
      {"sum(k: 40 where 2*i + 2*k < 64) X[i + k + #]", 32},
      {"sum(k: 40 where (i + k) / 2 < #) X[i + k]", 32},
      {"sum(k: 4 where (i + k) % 2 == 0, i + k < #) Y[(i + k) / 2 + 20]", 40},
  };
  for (const auto& [value, most] : kValues) {
    const auto parsed = [value = std::string(value)](int64_t number) {
      return ParseWorkload(
          absl::StrCat("workload w\ninput X: f32[64]\ninput Y: f32[40]\noutput Z[i: 61] = ",
                       absl::StrReplaceAll(value, {{"#", absl::StrCat(number)}}), "\n"));
    };
    EXPECT_THAT(parsed(most), IsOk()) << value;
    EXPECT_THAT(parsed(most + 1).status().message(), HasSubstr(" runs from ")) << value;
  }
}

// The guard that an error proposes makes the workload valid.
TEST(GuardTest, TheProposedGuardWorks) {
  const char* kReads[] = {"X[3*i]",           "X[i / 2, 60 - i]", "X[i, 2*j + 1]",
                          "X[i - j, i % 50]", "X[(i + j) / 2]",   "X[100 - 2*i]"};
  for (const std::string read : kReads) {
    SCOPED_TRACE(read);
    const std::string type = absl::StrContains(read, ',') ? "f32[40, 40]" : "f32[40]";
    for (const bool reduces : {false, true}) {
      std::vector<std::string> guards;
      absl::StatusOr<Workload> workload = absl::UnknownError("");
      for (int attempt = 0; attempt < 3 && !workload.ok(); ++attempt) {
        const std::string where =
            guards.empty() ? "" : absl::StrCat(" where ", absl::StrJoin(guards, ", "));
        workload = ParseWorkload(absl::StrCat(
            "workload w\ninput X: ", type, "\noutput Z[i: 61] = ",
            reduces ? absl::StrCat("sum(j: 61", where, ") ", read)
            : guards.empty()
                ? absl::StrReplaceAll(read, {{"j", "i"}})
                : absl::StrReplaceAll(absl::StrCat("(", read, where, " else 0)"), {{"j", "i"}}),
            "\n"));
        if (workload.ok()) break;
        const std::string error(workload.status().message());
        std::smatch guard;
        ASSERT_TRUE(
            std::regex_search(error, guard, std::regex("where (0 <= [^<]* < \\d+)( else 0)?\\)")))
            << error;
        guards.push_back(guard[1]);
      }
      EXPECT_THAT(workload, IsOk());
      EXPECT_FALSE(guards.empty());
    }
  }
}

}  // namespace
}  // namespace hone::ir
