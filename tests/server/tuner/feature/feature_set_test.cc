// The contract of FeatureSet, checked for every registered set.

#include "server/tuner/feature/feature_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "tests/server/tuner/feature/programs.h"
#include "tests/status.h"

namespace hone::feature {
namespace {

class FeatureSetTest : public testing::TestWithParam<std::string> {
 protected:
  const FeatureSet& set_ = **FindFeatureSet(GetParam());
};

TEST_P(FeatureSetTest, ColumnNamesAreUnique) {
  EXPECT_EQ(set_.name(), GetParam());
  EXPECT_EQ(set_.ColumnNames().size(), static_cast<size_t>(set_.Columns()));
  const std::set<std::string> names(set_.ColumnNames().begin(), set_.ColumnNames().end());
  EXPECT_EQ(names.size(), static_cast<size_t>(set_.Columns()));
}

TEST_P(FeatureSetTest, RandomProgramsGiveFiniteRowsThatDiffer) {
  // The minimum number of distinct rows per ten different programs. Feature sets that describe only
  // part of the loop nest give some programs equal rows. "analytic" and "draft" describe a
  // program by its estimated costs, which are equal for many programs.
  const bool costs = GetParam() == "analytic" || GetParam() == "draft";
  const int distinct = GetParam() == "curve-one" ? 1 : costs ? 2 : 8;
  for (const NamedTrace& trace : Traces()) {
    const schedule::Trace parsed = TraceOf(trace);
    std::set<std::vector<float>> seen;
    std::set<Digest> programs;
    for (uint64_t seed = 0; seed < 60; ++seed) {
      ir::Program program;
      std::vector<int64_t> decisions;
      if (!DrawProgram(trace, seed, program, &decisions)) continue;
      std::vector<float> values;
      int rows = 0;
      const Chosen chosen{0, decisions, &parsed};
      ASSERT_THAT(set_.ExtractCandidate(program, chosen, TestTarget(), values, rows), IsOk());
      ASSERT_GE(rows, 1);
      ASSERT_EQ(values.size(), static_cast<size_t>(rows) * set_.Columns());
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_TRUE(std::isfinite(values[i]))
            << trace.name << " seed " << seed << " " << set_.ColumnNames()[i % set_.Columns()];
      }
      // Extracting again appends the same rows.
      const std::vector<float> once = values;
      ASSERT_THAT(set_.ExtractCandidate(program, chosen, TestTarget(), values, rows), IsOk());
      ASSERT_TRUE(std::equal(once.begin(), once.end(), values.begin() + once.size()));
      seen.insert(once);
      programs.insert(program.StructuralDigest());
    }
    EXPECT_GE(seen.size() * 10, programs.size() * distinct) << trace.name;
  }
}

TEST_P(FeatureSetTest, NamesDoNotMatter) {
  const ir::Program program = ProgramOf(
      "workload m\ninput A: f32[24, 64]\ninput B: f32[64, 32]\n"
      "C[i: 24, j: 32] = sum(k: 64) A[i, k] * B[k, j]\noutput D[i: 24, j: 32] = max(C[i, j], "
      "0.0)\n");
  const ir::Program renamed = ProgramOf(
      "workload w\ninput Q: f32[24, 64]\ninput P: f32[64, 32]\n"
      "Z[zz: 24, b: 32] = sum(a: 64) Q[zz, a] * P[a, b]\noutput Y[zz: 24, b: 32] = max(Z[zz, b], "
      "0.0)\n");
  std::vector<float> first, second;
  int rows = 0;
  const schedule::Trace trace =
      schedule::ParseTrace("b0 = block(\"C\")\nb1 = cache_read(b0, \"A\", \"global\")\n")->trace;
  const schedule::Trace other =
      schedule::ParseTrace("b0 = block(\"Z\")\nb1 = cache_read(b0, \"Q\", \"global\")\n")->trace;
  ASSERT_THAT(set_.ExtractCandidate(program, {.trace = &trace}, TestTarget(), first, rows), IsOk());
  ASSERT_THAT(set_.ExtractCandidate(renamed, {.trace = &other}, TestTarget(), second, rows),
              IsOk());
  EXPECT_EQ(first, second);
}

TEST_P(FeatureSetTest, RejectsAProgramWithoutBlocks) {
  ir::Program program = ProgramOf(TraceCalled("plain"), {});
  program.kernels.clear();
  std::vector<float> values = {7};
  int rows = 0;
  EXPECT_FALSE(set_.Extract(program, TestTarget(), values, rows).ok());
  EXPECT_EQ(values, std::vector<float>{7});
}

// What sets have in common is computed once, which changes no row.
TEST_P(FeatureSetTest, OtherSetsOfTheSameProgramDoNotMatter) {
  const target::Target target = TestTarget();
  Description description;
  for (const NamedTrace& trace : Traces()) {
    ir::Program program;
    std::vector<int64_t> decisions;
    if (!DrawProgram(trace, 3, program, &decisions)) continue;
    std::vector<float> alone;
    int rows = 0;
    const schedule::Trace parsed = TraceOf(trace);
    const Chosen chosen{0, decisions, &parsed};
    ASSERT_THAT(set_.ExtractCandidate(program, chosen, TestTarget(), alone, rows), IsOk());
    for (const char* first : {"statement", "draft", "residual"}) {
      description.Begin(program, target);
      std::vector<float> other, with_other;
      ASSERT_THAT((*FindFeatureSet(first))->Extract(description, other, rows), IsOk());
      ASSERT_THAT(set_.ExtractCandidate(description, chosen, with_other, rows), IsOk());
      EXPECT_EQ(with_other, alone) << trace.name << " after " << first;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, FeatureSetTest, testing::ValuesIn(FeatureSetNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(FeatureSetRegistryTest, ListsTheNamesForAnUnknownOne) {
  const absl::Status missing = FindFeatureSet("crystal").status();
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_NE(
      missing.message().find("statement_original, analytic, draft, residual, knob, itervar, "
                             "curve, curve-one, curve-fix, curve-fix-reuse, tree, primitives"),
      absl::string_view::npos)
      << missing;
}

}  // namespace
}  // namespace hone::feature
