// Rewritten programs are built, checked against the reference of the original workload, and timed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/ir/workload_parser.h"
#include "common/schedule/rewrite/rewrite.h"
#include "tests/status.h"
#include "tests/worker/builder/measured_trace.h"

namespace hone {
namespace {

using record::MeasureResult;
using record::Outcome;
using ::testing::HasSubstr;

// The sizes leave partial tiles in both directions, partial vectors of channels and partial tiles
// of rows in the products.
constexpr char kConv[] =
    "workload conv\n"
    "input X: f32[2, 13, 10, 20]\n"
    "input W: f32[3, 3, 20, 24] constant\n"
    "output Y[n: 2, h: 13, w: 10, co: 24] = sum(r: 3, s: 3, ci: 20 where 0 <= h + r - 1 < 13, 0 <= "
    "w + s - 1 < 10)\n"
    "  X[n, h + r - 1, w + s - 1, ci] * W[r, s, ci, co]\n";

// The schedule of tests/bench/traces, with sizes that do not divide evenly. COLUMNS is the number
// of tiles in a row, M the number of outputs in a tile.
constexpr char kWinograd[] =
    "rewrite(\"winograd\", \"Y\", M)\n"
    "u = block(\"Y_u\")\n"
    "ux, uy, uk, uo = loops(u)\n"
    "uo0, uo1 = split(uo, 0, 8)\n"
    "vectorize(uo1)\n"
    "transform_layout(u, \"x, y, k, o -> x, y, o / 16, k, o % 16\")\n"
    "v = block(\"Y_v\")\n"
    "vx, vy, vt, vc = loops(v)\n"
    "vr, vw = split(vt, 0, COLUMNS)\n"
    "vc0, vc1 = split(vc, 0, 16)\n"
    "reorder(vr, vw, vc0, vx, vy, vc1)\n"
    "bd = block(\"Y_bd\")\n"
    "compute_at(bd, vc0)\n"
    "a0, a1, a2, bt, bx, bj, bc = loops(bd)\n"
    "reorder(bj, bx)\n"
    "d = block(\"Y_d\")\n"
    "compute_at(d, bj)\n"
    "c0, c1, c2, c3, c4, dt, di, dj, dc, dz = loops(d)\n"
    "reorder(dz, dc)\n"
    "vectorize(dc)\n"
    "unroll(di)\n"
    "vectorize(bc)\n"
    "unroll(bx)\n"
    "unroll(bj)\n"
    "vectorize(vc1)\n"
    "unroll(vy)\n"
    "unroll(vx)\n"
    "parallel(vr)\n"
    "m = block(\"Y_m\")\n"
    "mx, my, mt, mo, mk = loops(m)\n"
    "mt1, mo1, mk1 = register_tile(m, mt, mo, mk, 7, 1, 16, 3)\n"
    "mp = fuse(mx, my)\n"
    "parallel(mp)\n"
    "y = block(\"Y\")\n"
    "yn, yh, yw, yo = loops(y)\n"
    "yh0, yh1 = split(yh, 0, M)\n"
    "yw0, yw1 = split(yw, 0, M)\n"
    "yo0, yo1 = split(yo, 0, 16)\n"
    "reorder(yh0, yw0, yo0, yh1, yw1, yo1)\n"
    "am = block(\"Y_am\")\n"
    "compute_at(am, yo0)\n"
    "e0, e1, e2, e3, at, aa, ay, ao = loops(am)\n"
    "reorder(ay, aa)\n"
    "vectorize(ao)\n"
    "unroll(aa)\n"
    "unroll(ay)\n"
    "vectorize(yo1)\n"
    "unroll(yw1)\n"
    "unroll(yh1)\n"
    "parallel(yh0)\n";

std::string WinogradTrace(int m) {
  return absl::StrReplaceAll(
      kWinograd, {{"M)", absl::StrCat(m, ")")}, {"COLUMNS", absl::StrCat((10 + m - 1) / m)}});
}

class RewrittenKernelTest : public ::testing::Test {
 protected:
  MeasureResult Measure(const std::string& workload, const std::string& trace, double tolerance) {
    return measured_.Run(absl::StrCat(workload, "trace 1\n", trace), tolerance);
  }

  MeasuredTrace measured_;
};

// A job accepts the kernel at the tolerance that the rewrite states.
TEST_F(RewrittenKernelTest, WinogradPassesAtItsTolerance) {
  HONE_ASSERT_OK_AND_ASSIGN(const auto workload, ir::ParseWorkload(kConv));
  for (const int m : {2, 4, 6}) {
    HONE_ASSERT_OK_AND_ASSIGN(const auto tolerance,
                              schedule::RewriteTolerance(workload, "winograd", "Y", {m}));
    for (const double allowed : {tolerance, 1e-3}) {
      const MeasureResult result = Measure(kConv, WinogradTrace(m), allowed);
      EXPECT_EQ(result.outcome, Outcome::kOk) << m << ": " << result.detail;
      EXPECT_GT(result.latency_ns, 0);
      EXPECT_LE(result.max_error, 1);
    }
  }
}

// The transforms for m = 4 and 6 contain thirds, which are not exact. The strict check compares
// integers bitwise and reports this.
TEST_F(RewrittenKernelTest, StrictCheckRejectsInexactRewrites) {
  for (const int m : {4, 6}) {
    const MeasureResult result = Measure(kConv, WinogradTrace(m), 0);
    EXPECT_EQ(result.outcome, Outcome::kWrongOutput) << m;
    EXPECT_THAT(result.detail, HasSubstr("on small integers"));
  }
}

// Without a schedule, every select is evaluated at run time.
TEST_F(RewrittenKernelTest, UnscheduledProgramsAreRight) {
  EXPECT_EQ(Measure(kConv, "rewrite(\"winograd\", \"Y\", 4)\n", 1e-3).outcome, Outcome::kOk);
}

TEST_F(RewrittenKernelTest, Im2colPassesTheStrictCheck) {
  const MeasureResult result = Measure(kConv,
                                       "rewrite(\"im2col\", \"Y\")\n"
                                       "p = block(\"Y_p\")\n"
                                       "y = block(\"Y\")\n"
                                       "yn, yh, yw, yo, yr, ys, yi = loops(y)\n"
                                       "k = fuse(yr, ys, yi)\n"
                                       "t = fuse(yn, yh, yw)\n"
                                       "t1, o1, k1 = register_tile(y, t, yo, k, 7, 1, 16, 4)\n"
                                       "pn, ph, pw, pr, ps, pi, pz = loops(p)\n"
                                       "rows = fuse(pn, ph)\n"
                                       "i0, i1 = split(pi, 0, 16)\n"
                                       "reorder(pz, i1)\n"
                                       "vectorize(i1)\n"
                                       "parallel(rows)\n"
                                       "parallel(t1)\n",
                                       0);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
}

// Computes the patches of one row of outputs at a time.
TEST_F(RewrittenKernelTest, Im2colPatchesCanBeComputedAtTheProduct) {
  const MeasureResult result = Measure(kConv,
                                       "rewrite(\"im2col\", \"Y\")\n"
                                       "y = block(\"Y\")\n"
                                       "yn, yh, yw, yo, yr, ys, yi = loops(y)\n"
                                       "rows = fuse(yn, yh)\n"
                                       "p = block(\"Y_p\")\n"
                                       "compute_at(p, rows)\n"
                                       "w1, o1, k1 = register_tile(y, yw, yo, yi, 5, 1, 16, 4)\n"
                                       "parallel(rows)\n",
                                       0);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
}

TEST_F(RewrittenKernelTest, SplitKPassesTheStrictCheck) {
  const MeasureResult result = Measure(
      "workload matmul\ninput A: f32[9, 1000]\ninput B: f32[1000, 24]\noutput C[i: 9, j: 24] = "
      "sum(k: 1000) A[i, k] * B[k, j]\n",
      "rewrite(\"split_k\", \"C\", 7)\n"
      "c = block(\"C_part\")\n"
      "cp, ci, cj, ck = loops(c)\n"
      "i1, j1, k1 = register_tile(c, ci, cj, ck, 9, 2, 16, 4)\n"
      "parallel(cp)\n",
      0);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
}

TEST_F(RewrittenKernelTest, OnlineSoftmaxPassesTheStrictCheck) {
  const MeasureResult result = Measure(
      "workload softmax\ninput X: f32[12, 300]\n"
      "M[i: 12] = max(k: 300) X[i, k]\n"
      "E[i: 12, k: 300] = exp(X[i, k] - M[i])\n"
      "S[i: 12] = sum(k: 300) E[i, k]\n"
      "output Y[i: 12, k: 300] = E[i, k] / S[i]\n",
      "rewrite(\"online_softmax\", \"S\")\n"
      "e = block(\"E\")\n"
      "compute_inline(e)\n"
      "y = block(\"Y\")\n"
      "yi, yk = loops(y)\n"
      "parallel(yi)\n",
      0);
  EXPECT_EQ(result.outcome, Outcome::kOk) << result.detail;
}

}  // namespace
}  // namespace hone
