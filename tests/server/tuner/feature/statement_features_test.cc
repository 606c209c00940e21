#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "server/tuner/feature/feature_sets.h"
#include "tests/server/tuner/feature/programs.h"
#include "tests/status.h"

namespace hone::feature {
namespace {

// The values of a row by column name, with the logarithm reversed.
class Row {
 public:
  Row(const FeatureSet& set, const float* values) {
    for (int c = 0; c < set.Columns(); ++c) values_[set.ColumnNames()[c]] = values[c];
  }
  float Raw(const std::string& column) const { return values_.at(column); }
  double operator[](const std::string& column) const {
    return std::exp2(static_cast<double>(values_.at(column))) - 1;
  }

  // The prefix of the buffer slot with this number of unique bytes.
  std::string SlotOf(double unique_bytes) const {
    for (int slot = 0; slot < 5; ++slot) {
      const std::string prefix = absl::StrCat("buffer", slot, ".");
      if (std::abs((*this)[prefix + "unique_bytes"] - unique_bytes) < 1e-3 * unique_bytes)
        return prefix;
    }
    ADD_FAILURE() << "no buffer of " << unique_bytes << " bytes";
    return "buffer4.";
  }

 private:
  std::map<std::string, float> values_;
};

std::vector<Row> RowsOf(const ir::Program& program,
                        StatementVariant variant = StatementVariant::kCorrected) {
  const std::unique_ptr<FeatureSet> set = MakeStatementFeatures(variant);
  std::vector<float> values;
  int rows = 0;
  EXPECT_THAT(set->Extract(program, TestTarget(), values, rows), IsOk());
  EXPECT_EQ(values.size(), static_cast<size_t>(rows) * set->Columns());
  std::vector<Row> result;
  for (int r = 0; r < rows; ++r) result.emplace_back(*set, values.data() + r * set->Columns());
  return result;
}

#define EXPECT_COUNT(actual, expected) EXPECT_NEAR(actual, expected, 1e-4 * (expected) + 1e-5)

// C[8, 32] = sum over 64 of A[8, 64]·B[64, 32], with the loops i j k in order. By hand: there are
// 16384 executions; A has 2048 bytes and is read along k; B has 8192 bytes and is read down its
// columns; C does not move along k.
TEST(StatementFeaturesTest, PlainMatmulByHand) {
  const ir::Program program = ProgramOf(
      "workload m\ninput A: f32[8, 64]\ninput B: f32[64, 32]\n"
      "output C[i: 8, j: 32] = sum(k: 64) A[i, k] * B[k, j]\n");
  const std::vector<Row> rows = RowsOf(program);
  ASSERT_EQ(rows.size(), 1u);
  const Row& row = rows[0];
  EXPECT_COUNT(row["float.mad"], 16384);
  EXPECT_EQ(row["float.mul"], 0);
  EXPECT_EQ(row["float.addsub"], 0);
  EXPECT_EQ(row.Raw("vectorize.pos_none"), 1);
  EXPECT_COUNT(row["outer_prod"], 16384);
  EXPECT_COUNT(row["num_loops"], 3);

  const std::string c = row.SlotOf(8 * 32 * 4), a = row.SlotOf(8 * 64 * 4),
                    b = row.SlotOf(64 * 32 * 4);
  EXPECT_EQ(row.Raw(c + "read_write"), 1);
  EXPECT_EQ(row.Raw(a + "read"), 1);
  EXPECT_COUNT(row[a + "bytes"], 16384 * 4);
  // Cache lines: A moves 4 bytes per step; B moves 128 bytes per step, a new line each time; C
  // moves 4 bytes every 64 steps.
  EXPECT_COUNT(row[a + "lines"], 1024);
  EXPECT_COUNT(row[b + "lines"], 16384);
  EXPECT_COUNT(row[c + "lines"], 16);
  EXPECT_COUNT(row[b + "unique_lines"], 64 * 32 * 4 / 64);
  EXPECT_COUNT(row[a + "stride"], 1);
  EXPECT_COUNT(row[b + "stride"], 32);
  EXPECT_EQ(row[c + "stride"], 0);
  // Reuse: C immediately, over 64 executions of 12 bytes; A after k, 32 times; B after j and k, 8
  // times.
  EXPECT_EQ(row.Raw(c + "reuse_loop"), 1);
  EXPECT_COUNT(row[c + "reuse_dis_iter"], 1);
  EXPECT_COUNT(row[c + "reuse_dis_bytes"], 12);
  EXPECT_COUNT(row[c + "reuse_ct"], 64);
  EXPECT_COUNT(row[a + "reuse_dis_iter"], 64);
  EXPECT_COUNT(row[a + "reuse_dis_bytes"], 64 * 4 + 64 * 4 + 4);
  EXPECT_COUNT(row[a + "reuse_ct"], 32);
  EXPECT_COUNT(row[b + "reuse_dis_iter"], 2048);
  EXPECT_COUNT(row[b + "reuse_dis_bytes"], 64 * 4 + 64 * 32 * 4 + 32 * 4);
  EXPECT_COUNT(row[b + "reuse_ct"], 8);
  EXPECT_COUNT(row[b + "lines_d_reuse"], 2048);
  // Arithmetic intensity of the whole statement: 2 operations per execution over all bytes touched.
  EXPECT_COUNT(row["intensity.9"], 2 * 16384 / (2048.0 + 8192 + 1024));
  EXPECT_EQ(row["alloc.size"], 0);
}

TEST(StatementFeaturesTest, PlainMatmulMatchesPublicCode) {
  const std::vector<Row> rows =
      RowsOf(ProgramOf("workload m\ninput A: f32[8, 64]\ninput B: f32[64, 32]\n"
                       "output C[i: 8, j: 32] = sum(k: 64) A[i, k] * B[k, j]\n"),
             StatementVariant::kOriginal);
  EXPECT_EQ(rows[0]["float.mad"], 0);
  EXPECT_COUNT(rows[0]["float.mul"], 16384);
  EXPECT_COUNT(rows[0]["float.addsub"], 16384);
}

// The micro-kernel: 8 rows × 2 vectors × 16 lanes, two steps of k unrolled, B in panels of 32
// columns.
const std::vector<int64_t> kPackedDecisions = {8, 2, 2, 4, 64, 2, 128, 2, 128};

TEST(StatementFeaturesTest, RegisterTileShowsInTheStandardColumns) {
  const std::vector<Row> rows = RowsOf(ProgramOf(TraceCalled("packed"), kPackedDecisions));
  ASSERT_EQ(rows.size(), 2u);  // the packing, the product
  const Row& tile = rows[1];
  EXPECT_COUNT(tile["vectorize.len"], 16);
  EXPECT_EQ(tile.Raw("vectorize.pos_inner_spatial"), 1);
  EXPECT_COUNT(tile["unroll.num"], 3);
  EXPECT_COUNT(tile["unroll.prod"], 2 * 8 * 2);
  EXPECT_COUNT(tile["parallel.prod"], 4);
  const std::string c = tile.SlotOf(256 * 256 * 4);
  // 8×2 accumulators of 16 lanes lie between two uses of an element of C. Each is used twice before
  // the loop over k advances.
  EXPECT_EQ(tile.Raw(c + "reuse_loop"), 1);
  EXPECT_COUNT(tile[c + "reuse_dis_iter"], 8 * 2 * 16);
  EXPECT_COUNT(tile[c + "reuse_ct"], 2);
  // The panel is read with stride 1 and is packed: 256 rows of 32 columns, live within one step of
  // the outer loops.
  const Row& packing = rows[0];
  EXPECT_COUNT(packing["alloc.size"], 128 * 64 * 4);
  EXPECT_COUNT(packing["alloc.outer_prod"], 4 * 2);
}

TEST(StatementFeaturesTest, FusedLoopIsMixedUnlikeInPublicCode) {
  const ir::Program program = ProgramOf(TraceCalled("tiled"), {16, 4, 4, 8, 2, 16, 64, 4});
  const Row corrected = RowsOf(program).back();
  EXPECT_EQ(corrected.Raw("parallel.pos_mixed"), 1);
  EXPECT_EQ(corrected.Raw("unroll.pos_outer_spatial"), 1);
  EXPECT_EQ(corrected.Raw("vectorize.pos_inner_spatial"), 1);
  const Row original = RowsOf(program, StatementVariant::kOriginal).back();
  EXPECT_EQ(original.Raw("unroll.pos_mixed"), 1);
  EXPECT_EQ(original.Raw("vectorize.pos_mixed"), 1);
}

TEST(StatementFeaturesTest, DecomposedInitIsARowThatReusesTheSameBuffer) {
  const std::vector<Row> rows =
      RowsOf(ProgramOf(TraceCalled("tiled"), {16, 4, 4, 8, 2, 16, 64, 4}));
  ASSERT_EQ(rows.size(), 2u);
  const Row& init = rows[0];
  EXPECT_EQ(init["float.mad"], 0);
  EXPECT_EQ(init.Raw("buffer0.write"), 1);
  EXPECT_EQ(init.Raw("buffer0.reuse_serial"), 1);
  EXPECT_COUNT(init["buffer0.reuse_ct"], 1);
}

TEST(StatementFeaturesTest, NamesOfVariablesDoNotMatter) {
  const std::string text =
      "workload m\ninput A: f32[24, 64]\ninput B: f32[64, 32]\n"
      "C[i: 24, j: 32] = sum(k: 64) A[i, k] * B[k, j]\noutput D[i: 24, j: 32] = max(C[i, j], "
      "0.0)\n";
  const std::string renamed =
      "workload w\ninput Q: f32[24, 64]\ninput P: f32[64, 32]\n"
      "Z[zz: 24, b: 32] = sum(a: 64) Q[zz, a] * P[a, b]\noutput Y[zz: 24, b: 32] = max(Z[zz, b], "
      "0.0)\n";
  for (const StatementVariant variant :
       {StatementVariant::kCorrected, StatementVariant::kOriginal}) {
    std::vector<float> first, second;
    int rows = 0;
    ASSERT_THAT(MakeStatementFeatures(variant)->Extract(ProgramOf(text), TestTarget(), first, rows),
                IsOk());
    ASSERT_TRUE(MakeStatementFeatures(variant)
                    ->Extract(ProgramOf(renamed), TestTarget(), second, rows)
                    .ok());
    EXPECT_EQ(first, second);
  }
}

TEST(StatementFeaturesTest, PaddedConvolutionTouchesNoMoreThanItsInput) {
  const ir::Program program = ProgramOf(
      "workload c\ninput X: f32[1, 14, 14, 8]\ninput W: f32[3, 3, 8, 16]\n"
      "output Y[n: 1, h: 14, w: 14, o: 16] = sum(r: 3, s: 3, c: 8 where 0 <= h + r - 1 < 14, 0 <= "
      "w + s - 1 < 14) "
      "X[n, h + r - 1, w + s - 1, c] * W[r, s, c, o]\n");
  const Row row = RowsOf(program).back();
  EXPECT_FALSE(row.SlotOf(14 * 14 * 8 * 4).empty());
  EXPECT_FALSE(row.SlotOf(3 * 3 * 8 * 16 * 4).empty());
}

TEST(StatementFeaturesTest, PrepackedConstantsAreNotTimed) {
  NamedTrace trace = TraceCalled("plain");
  trace.op = "dense_relu";
  trace.trace = R"(
b0 = block("C")
b1 = cache_read(b0, "W", "global")
transform_layout(b1, "k, j -> j / 16, k, j % 16")
)";
  const ir::Program program = ProgramOf(trace, {});
  EXPECT_EQ(program.AllBlocks().size(), 3u);
  EXPECT_EQ(RowsOf(program).size(), 2u);
}

TEST(StatementFeaturesTest, RejectsUnsupportedPrograms) {
  ir::Program program = ProgramOf(TraceCalled("plain"), {});
  const ir::NodeId block = program.AllBlocks()[0];
  std::vector<float> values = {7};
  int rows = 0;
  for (int i = 0; i < 70; ++i) {
    const ir::NodeId parent = program.node(block).parent;
    const ir::NodeId loop = program.NewLoop("deep", ir::ExtentTable::Constant(1));
    program.node(parent).children[0] = loop;
    program.node(loop).parent = parent;
    program.node(loop).children.push_back(block);
    program.node(block).parent = loop;
  }
  EXPECT_THAT(MakeStatementFeatures(StatementVariant::kCorrected)
                  ->Extract(program, TestTarget(), values, rows),
              StatusIs(absl::StatusCode::kInvalidArgument));
  program.kernels.clear();
  EXPECT_THAT(MakeStatementFeatures(StatementVariant::kCorrected)
                  ->Extract(program, TestTarget(), values, rows),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(values, std::vector<float>{7});
}

}  // namespace
}  // namespace hone::feature
