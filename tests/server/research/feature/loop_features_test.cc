// Checks columns of knob, itervar, the curves and analytic against values computed by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "server/research/feature/feature_sets.h"
#include "server/research/feature/touch.h"
#include "server/tuner/feature/feature_set.h"
#include "tests/server/tuner/feature/programs.h"
#include "tests/status.h"

namespace hone::feature {
namespace {

// C[8, 32] = sum over 64 of A[8, 64]·B[64, 32], with the loops i j k in order and the accesses in
// the order C, A, B.
ir::Program Matmul() {
  return ProgramOf(
      "workload m\ninput A: f32[8, 64]\ninput B: f32[64, 32]\n"
      "output C[i: 8, j: 32] = sum(k: 64) A[i, k] * B[k, j]\n");
}

class Row {
 public:
  Row(const FeatureSet& set, const ir::Program& program) {
    std::vector<float> values;
    int rows = 0;
    EXPECT_THAT(set.Extract(program, TestTarget(), values, rows), IsOk());
    EXPECT_EQ(rows, 1);
    for (int c = 0; c < set.Columns(); ++c) values_[set.ColumnNames()[c]] = values[c];
  }
  float Raw(const std::string& column) const { return values_.at(column); }
  double operator[](const std::string& column) const {  // with the logarithm reversed
    const double value = values_.at(column);
    return value < 0 ? 1 - std::exp2(-value) : std::exp2(value) - 1;
  }

 private:
  std::map<std::string, float> values_;
};

#define EXPECT_COUNT(actual, expected) EXPECT_NEAR(actual, expected, 1e-4 * (expected) + 1e-4)

TEST(ItervarFeaturesTest, PlainMatmulByHand) {
  const Row row(**FindFeatureSet("itervar"), Matmul());
  EXPECT_COUNT(row["loop0.length"], 8);
  EXPECT_EQ(row.Raw("loop0.nest_level"), 1);
  EXPECT_COUNT(row["loop1.topdown"], 8 * 32);
  EXPECT_COUNT(row["loop1.bottomup"], 32 * 64);
  EXPECT_EQ(row.Raw("loop1.serial"), 1);
  EXPECT_EQ(row["loop1.mul"], 0);
  EXPECT_COUNT(row["loop2.mul"], 1);
  EXPECT_COUNT(row["loop2.add"], 1);
  // C under i: i moves C by rows of 32, and C is reused along k.
  EXPECT_COUNT(row["loop0.touch0.stride"], 32);
  EXPECT_EQ(row.Raw("loop0.touch0.mod"), -1);
  EXPECT_COUNT(row["loop0.touch0.count"], 8 * 32);
  EXPECT_COUNT(row["loop0.touch0.reuse"], 64);
  EXPECT_EQ(row["loop0.touch0.thread_count"], 0);
  // A under j: j does not move A.
  EXPECT_EQ(row["loop1.touch1.stride"], 0);
  EXPECT_COUNT(row["loop1.touch1.count"], 64);
  EXPECT_COUNT(row["loop1.touch1.reuse"], 32);
  // B under k.
  EXPECT_COUNT(row["loop2.touch2.stride"], 32);
  EXPECT_COUNT(row["loop2.touch2.count"], 64);
  EXPECT_COUNT(row["loop2.touch2.reuse"], 1);
  EXPECT_EQ(row["loop3.length"], 0);
  EXPECT_EQ(row["loop0.touch3.count"], 0);
}

TEST(ItervarFeaturesTest, KindsOfLoops) {
  const Row row(**FindFeatureSet("itervar"),
                ProgramOf(TraceCalled("tiled"), {16, 4, 4, 8, 2, 16, 64, 4}));
  EXPECT_EQ(row.Raw("loop0.parallel"), 1);
  EXPECT_EQ(row.Raw("loop0.serial"), 0);
  // The 128 iterations of the parallel loop itself, split into those that move an access and those
  // that do not.
  for (const char* touch : {"touch0", "touch1", "touch2", "touch3"}) {
    const std::string prefix = std::string("loop0.") + touch;
    EXPECT_COUNT((row[prefix + ".thread_count"]) * (row[prefix + ".thread_reuse"]), 128);
  }
}

// The rows of a candidate, indexed by row number and column name.
class TreeRows {
 public:
  explicit TreeRows(const ir::Program& program) {
    EXPECT_THAT((**FindFeatureSet("tree")).Extract(program, TestTarget(), values_, count_), IsOk());
  }
  int count() const { return count_; }
  float operator()(int row, const std::string& column) const {
    const std::vector<std::string>& names = (**FindFeatureSet("tree")).ColumnNames();
    const auto at = std::find(names.begin(), names.end(), column) - names.begin();
    return values_.at(row * names.size() + at);
  }

 private:
  std::vector<float> values_;
  int count_ = 0;
};

TEST(TreeFeaturesTest, ARowPerLoopThatNamesItsParent) {
  const TreeRows rows(Matmul());
  ASSERT_EQ(rows.count(), 3);
  for (int row = 0; row < 3; ++row) {
    EXPECT_EQ(rows(row, "parent"), row - 1);
    EXPECT_EQ(rows(row, "nest_level"), row + 1);
  }
  EXPECT_NEAR(rows(1, "length"), std::log2(33.0), 1e-5);
  // The columns are the same as in the single row of itervar.
  const Row itervar(**FindFeatureSet("itervar"), Matmul());
  for (const std::string column : {"bottomup", "add", "touch1.stride", "touch2.reuse"}) {
    EXPECT_EQ(rows(2, column), itervar.Raw("loop2." + column)) << column;
  }
}

TEST(TreeFeaturesTest, LoopsOfSeveralStatementsBranch) {
  const TreeRows rows(ProgramOf(TraceCalled("fused"), std::vector<int64_t>{12, 8, 8, 16}));
  std::map<int, int> children;
  for (int row = 0; row < rows.count(); ++row) {
    EXPECT_LT(rows(row, "parent"), row) << "a row must come after its parent";
    ++children[static_cast<int>(rows(row, "parent"))];
    if (rows(row, "parent") >= 0) {
      EXPECT_EQ(rows(static_cast<int>(rows(row, "parent")), "nest_level"),
                rows(row, "nest_level") - 1);
    }
  }
  bool branches = false;
  for (const auto& [parent, count] : children) branches |= parent >= 0 && count > 1;
  EXPECT_TRUE(branches) << "the consumer is fused into the loops of its producer";
}

TEST(CurveFeaturesTest, SamplesTheLargestXNotAboveTheThreshold) {
  const Row row(**FindFeatureSet("curve-fix"), Matmul());
  // C: the counts are 2^8, 2^5 and 2^0; every reuse is 2^6.
  EXPECT_EQ(row.Raw("buffer0.count_reuse.0.value"), 6);
  EXPECT_EQ(row.Raw("buffer0.count_reuse.4.distance"), 4);
  EXPECT_EQ(row.Raw("buffer0.count_reuse.5.distance"), 0);
  EXPECT_EQ(row.Raw("buffer0.reuse_count.5.value"), 0);
  EXPECT_EQ(row.Raw("buffer0.reuse_count.5.distance"), 5);
  EXPECT_EQ(row.Raw("buffer0.reuse_count.6.value"), 8);
  EXPECT_EQ(row.Raw("buffer0.reuse_count.29.distance"), 23);
  // The two sides are sorted separately: the smallest count (of k) is paired with the smallest
  // product (of i).
  EXPECT_EQ(row.Raw("buffer0.count_topdown.0.value"), 3);
  EXPECT_EQ(row.Raw("buffer3.count_reuse.29.distance"), 0);
}

TEST(CurveFeaturesTest, RegisteredVariantsDifferInSamplesAndRelations) {
  EXPECT_EQ((**FindFeatureSet("curve")).Columns(), kCurveBuffers * 4 * 20 * 2);
  EXPECT_EQ((**FindFeatureSet("curve-one")).Columns(), kCurveBuffers * 4 * 1 * 2);
  EXPECT_EQ((**FindFeatureSet("curve-fix")).Columns(), kCurveBuffers * 4 * 30 * 2);
  EXPECT_EQ((**FindFeatureSet("curve-fix-reuse")).Columns(), kCurveBuffers * 2 * 30 * 2);
}

TEST(KnobFeaturesTest, AreTheDecisions) {
  const ir::Program program = Matmul();
  std::vector<float> values;
  int rows = 0;
  const FeatureSet& knob = **FindFeatureSet("knob");
  const std::vector<int64_t> decisions = {4, 0, 512};
  ASSERT_THAT(knob.ExtractCandidate(program, {2, decisions}, TestTarget(), values, rows), IsOk());
  EXPECT_EQ(rows, 1);
  EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 6),
            (std::vector<float>{2, 3, 4, 0, 512, 0}));
  EXPECT_THAT(knob.Extract(program, TestTarget(), values, rows),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  const std::vector<int64_t> many(kKnobDecisions + 1);
  EXPECT_THAT(knob.ExtractCandidate(program, {0, many}, TestTarget(), values, rows),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(knob.MaxDecisions(), kKnobDecisions);
  EXPECT_EQ(values.size(), static_cast<size_t>(knob.Columns()));
}

// Row r of a set on a schedule, by the names of the columns.
std::map<std::string, float> PrimitiveRow(const FeatureSet& set, const schedule::Trace& trace,
                                          const std::vector<int64_t>& decisions, int r, int& rows) {
  std::vector<float> values;
  EXPECT_THAT(set.ExtractSchedule({0, decisions, &trace}, values, rows), IsOk());
  EXPECT_EQ(values.size(), static_cast<size_t>(rows) * set.Columns());
  std::map<std::string, float> row;
  for (int c = 0; c < set.Columns(); ++c) {
    if (const float value = values[r * set.Columns() + c]; value != 0)
      row[set.ColumnNames()[c]] = value;
  }
  return row;
}

TEST(PrimitiveFeaturesTest, AreTheScheduleWithoutAProgram) {
  const schedule::Trace trace = schedule::ParseTrace(
                                    "b0 = block(\"C\")\n"
                                    "l0, l1, l2 = loops(b0)\n"
                                    "x0, x1 = sample_perfect_tile(l0, parts=2)\n"
                                    "l3, l4 = split(l0, x0, x1)\n"
                                    "b1 = cache_read(b0, \"A\", \"global\")\n"
                                    "b2 = cache_read(b0, \"C\", \"shared\")\n"
                                    "l5 = sample_compute_location(b1)\n")
                                    ->trace;
  const FeatureSet& set = **FindFeatureSet("primitives");
  using Row = std::map<std::string, float>;
  int rows = 0;
  const auto row = [&](int r) { return PrimitiveRow(set, trace, {7, 3, 1}, r, rows); };
  EXPECT_EQ(row(0), (Row{{"type.block", 1}, {"argument0", 1}}));
  EXPECT_EQ(rows, 6);  // the drawn factors have no row
  EXPECT_EQ(row(1), (Row{{"type.loops", 1}, {"argument0", 1}}));
  EXPECT_EQ(row(2), (Row{{"type.split", 1}, {"argument0", 1}, {"argument1", 3}, {"argument2", 2}}));
  // A is the second name, C the first; scopes are words.
  const Row read = row(3), again = row(4);
  EXPECT_EQ(read.at("argument1"), 2);
  EXPECT_EQ(again.at("argument1"), 1);
  EXPECT_NE(read.at("argument2"), again.at("argument2"));
  // A drawn place has a row, because no number stands for it later.
  EXPECT_EQ(row(5), (Row{{"type.sample_compute_location", 1}, {"argument0", 2}, {"argument1", 1}}));

  // A partial schedule ends before the next draw.
  const FeatureSet& drawn = **FindFeatureSet("primitives-drawn");
  const std::vector<int64_t> decisions = {7, 3, 1};
  std::vector<float> whole, partial, values;
  ASSERT_THAT(drawn.ExtractSchedule({0, decisions, &trace}, whole, rows), IsOk());
  EXPECT_EQ(rows, 7);
  for (const auto& [made, rows_then] : {std::pair{3, 7}, {2, 6}, {1, 2}, {0, 2}}) {
    partial.clear();
    const auto some = absl::MakeConstSpan(decisions).first(made);
    ASSERT_THAT(drawn.ExtractSchedule({0, some, &trace}, partial, rows), IsOk());
    EXPECT_EQ(rows, rows_then) << made;
    EXPECT_TRUE(std::equal(partial.begin(), partial.end(), whole.begin())) << made;
  }
  EXPECT_THAT(drawn.ExtractSchedule({0, {7, 3, 1, 1}, &trace}, values, rows),
              StatusIs(absl::StatusCode::kInvalidArgument));

  EXPECT_THAT(set.ExtractSchedule({0, {7, 3}, &trace}, values, rows),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(set.ExtractSchedule({0, {7, 3, 1}}, values, rows),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT((**FindFeatureSet("statement")).ExtractSchedule({0, {}, &trace}, values, rows),
              StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(PrimitiveFeaturesTest, LongSchedulesAreCroppedAndShortOnesPadded) {
  const schedule::Trace trace =
      schedule::ParseTrace("b0 = block(\"C\")\nl0, l1, l2 = loops(b0)\nreorder(l2, l0, l1)\n")
          ->trace;
  int rows = 0;
  const auto cropped =
      MakePrimitiveFeatures("cropped", {.sequence = 3, .arguments = 2, .pad = true});
  EXPECT_EQ(
      PrimitiveRow(*cropped, trace, {}, 2, rows),
      (std::map<std::string, float>{{"type.reorder", 1}, {"argument0", 3}, {"argument1", 1}}));
  EXPECT_EQ(rows, 3);
  const auto padded = MakePrimitiveFeatures("padded", {.sequence = 5, .arguments = 3, .pad = true});
  EXPECT_TRUE(PrimitiveRow(*padded, trace, {}, 4, rows).empty());
  EXPECT_EQ(rows, 5);
  const auto short_one = MakePrimitiveFeatures("short", {.sequence = 2});
  EXPECT_EQ(PrimitiveRow(*short_one, trace, {}, 1, rows).count("type.loops"), 1u);
  EXPECT_EQ(rows, 2);
}

TEST(AnalyticFeaturesTest, PlainMatmulByHand) {
  const Row row(**FindFeatureSet("analytic"), Matmul());
  EXPECT_COUNT(row["operations"], 2 * 16384);
  EXPECT_COUNT(row["compute_cycles"], 16384 / 2);
  EXPECT_COUNT(row["latency_cycles"], 16384 * 4);  // one sum that waits for itself
  EXPECT_COUNT(row["port_cycles"], 16384 * 2 / 2);
  EXPECT_COUNT(row["bodies"], 16384);
  EXPECT_COUNT(row["entry_cycles"], 8 * 32 * (1.5 + 100));
  EXPECT_EQ(row["spill_cycles"], 0);
  EXPECT_COUNT(row["statements"], 1);
  EXPECT_GT(row["draft_cycles"], 16384 * 4);
  EXPECT_COUNT(row["lanes"], 1);
  EXPECT_EQ(row.Raw("wave"), 1.0f / TestTarget().cores);
}

TEST(AnalyticFeaturesTest, RegisterTileIsBoundByComputation) {
  const Row tile(**FindFeatureSet("analytic"),
                 ProgramOf(TraceCalled("packed"), {8, 2, 2, 4, 64, 2, 128, 2, 128}));
  EXPECT_COUNT(tile["lanes"], 16);
  EXPECT_EQ(tile.Raw("fill"), 1);
  EXPECT_COUNT(tile["accumulators"], 16);
  EXPECT_EQ(tile["spill_cycles"], 0);
  const Row plain(**FindFeatureSet("analytic"),
                  ProgramOf("workload m\ninput A: f32[256, 256]\ninput B: f32[256, 256]\n"
                            "output C[i: 256, j: 256] = sum(k: 256) A[i, k] * B[k, j]\n"));
  EXPECT_LT(tile.Raw("draft_cycles") + 3, plain.Raw("draft_cycles"));
  EXPECT_LT(tile.Raw("formula_arithmetic") + 3, plain.Raw("formula_arithmetic"));
}

}  // namespace
}  // namespace hone::feature
