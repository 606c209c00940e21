#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/schedule/rewrite/rewrite.h"
#include "common/schedule/rewrite/winograd_points.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"
#include "tests/status.h"

namespace hone::schedule {
namespace {

using testing::HasSubstr;

struct Shape {
  int n, h, w, ci, co, p;
};

std::string ConvText(const Shape& s, const char* dtype) {
  const int oh = s.h + 2 * s.p - 2, ow = s.w + 2 * s.p - 2;
  const std::string guard = s.p == 0 ? ""
                                     : absl::StrCat(" where 0 <= h + r - ", s.p, " < ", s.h,
                                                    ", 0 <= w + s - ", s.p, " < ", s.w);
  const std::string shift = s.p == 0 ? "" : absl::StrCat(" - ", s.p);
  return absl::StrCat("workload conv\ninput X: ", dtype, "[", s.n, ", ", s.h, ", ", s.w, ", ", s.ci,
                      "]\ninput W: ", dtype, "[3, 3, ", s.ci, ", ", s.co,
                      "] constant\noutput Y[n: ", s.n, ", h: ", oh, ", w: ", ow, ", co: ", s.co,
                      "] = sum(r: 3, s: 3, ci: ", s.ci, guard, ") X[n, h + r", shift, ", w + s",
                      shift, ", ci] * W[r, s, ci, co]\n");
}

// Whole and partial tiles; padding of zero, one and two rows; several images; an image smaller than
// a tile.
const Shape kShapes[] = {{1, 8, 8, 3, 2, 1}, {1, 7, 9, 2, 3, 1}, {2, 6, 11, 3, 2, 0},
                         {3, 5, 4, 2, 2, 2}, {1, 3, 3, 4, 1, 0}, {2, 14, 13, 1, 1, 1}};

class WinogradTest : public testing::TestWithParam<int> {};

TEST_P(WinogradTest, ComputesTheConvolutionInF64) {
  const int64_t m = GetParam();
  Rng rng(m);
  for (const Shape& shape : kShapes) {
    const ir::Workload original = Parsed(ConvText(shape, "f64"));
    HONE_ASSERT_OK_AND_ASSIGN(const auto rewritten, ApplyRewriteTo(original, "winograd", "Y", {m}));
    for (const Fill fill : {Fill::kInteger, Fill::kSymmetric}) {
      const double error =
          ErrorOf(original, rewritten, RandomInputs(original, fill, rng)).by_tensor;
      // F(2, 3) has only halves and quarters as constants, so it is exact.
      EXPECT_LE(error, m == 2 && fill == Fill::kInteger ? 0 : 1e-12) << ConvText(shape, "f64");
    }
  }
}

TEST_P(WinogradTest, KeepsItsBoundInF32) {
  const int64_t m = GetParam();
  Rng rng(m);
  for (const Shape& shape : {Shape{1, 9, 8, 16, 3, 1}, Shape{1, 12, 7, 64, 2, 0}}) {
    const ir::Workload original = Parsed(ConvText(shape, "f32"));
    HONE_ASSERT_OK_AND_ASSIGN(const auto rewritten, ApplyRewriteTo(original, "winograd", "Y", {m}));
    HONE_ASSERT_OK_AND_ASSIGN(const auto tolerance,
                              RewriteTolerance(original, "winograd", "Y", {m}));
    const double bound = 4 * 0x1p-24 * std::sqrt(9.0 * shape.ci) + tolerance;
    EXPECT_LE(bound, 1e-3);
    for (const Fill fill : {Fill::kSymmetric, Fill::kPositive}) {
      const double error =
          ErrorOf(original, rewritten, RandomInputs(original, fill, rng)).by_element;
      EXPECT_LE(error, bound);
      EXPECT_GT(error, 0);
    }
  }
}

TEST_P(WinogradTest, RewrittenTextParsesToTheSameWorkload) {
  const ir::Workload original = Parsed(ConvText(kShapes[1], "f32"));
  HONE_ASSERT_OK_AND_ASSIGN(const auto rewritten,
                            ApplyRewriteTo(original, "winograd", "Y", {GetParam()}));
  EXPECT_EQ(Parsed(rewritten.ToText()).StructuralDigest(), rewritten.StructuralDigest());
}

INSTANTIATE_TEST_SUITE_P(Tiles, WinogradTest, testing::Values(2, 4, 6));

// On unit vectors, y = Aᵀ[(G·g) ⊙ (Bᵀ·d)] is the correlation.
TEST(WinogradPointsTest, MatricesGiveTheCorrelation) {
  for (const int m : {2, 4, 6}) {
    const WinogradMatrices matrices = MakeWinogradMatrices(m);
    for (int j = 0; j < m; ++j) {
      for (int k = 0; k < 3; ++k) {
        for (int i = 0; i < m + 2; ++i) {
          double sum = 0;
          for (int x = 0; x < m + 2; ++x)
            sum += matrices.at[j][x] * matrices.g[x][k] * matrices.bt[x][i];
          EXPECT_NEAR(sum, i == j + k ? 1 : 0, 1e-12) << m << " " << j << " " << k << " " << i;
        }
      }
    }
  }
}

TEST(WinogradPointsTest, LargerTilesLoseMoreDigits) {
  EXPECT_LT(WinogradAmplification(2), 10);
  EXPECT_LT(WinogradAmplification(2), WinogradAmplification(4));
  EXPECT_LT(WinogradAmplification(4), WinogradAmplification(6));
}

// A consumer still reads the convolution's tensor, and the tiles read a producer's tensor.
TEST(WinogradStagesTest, WorksInTheMiddleOfAWorkload) {
  const ir::Workload original = Parsed(
      "workload block\n"
      "input X: f64[1, 7, 7, 2]\n"
      "input W: f64[3, 3, 2, 3] constant\n"
      "input B: f64[3] constant\n"
      "A[n: 1, h: 7, w: 7, c: 2] = max(X[n, h, w, c], 0.0)\n"
      "Y[n: 1, h: 7, w: 7, co: 3] = sum(r: 3, s: 3, ci: 2 where 0 <= h + r - 1 < 7, 0 <= w + s - 1 "
      "< 7)\n"
      "  W[r, s, ci, co] * A[n, h + r - 1, w + s - 1, ci]\n"
      "output Z[n: 1, h: 7, w: 7, co: 3] = max(Y[n, h, w, co] + B[co], 0.0)\n");
  HONE_ASSERT_OK_AND_ASSIGN(const auto rewritten, ApplyRewriteTo(original, "winograd", "Y", {2}));
  EXPECT_EQ(rewritten.stages.size(), original.stages.size() + 6);
  Rng rng(1);
  EXPECT_EQ(ErrorOf(original, rewritten, RandomInputs(original, Fill::kInteger, rng)).by_tensor, 0);
}

TEST(WinogradRefusalTest, ErrorsNameTheCause) {
  const auto refusal = [](const std::string& text, int64_t m) {
    return std::string(ApplyRewriteTo(Parsed(text), "winograd", "Y", {m}).status().message());
  };
  const std::string head =
      "workload conv\ninput X: f32[1, 9, 9, 2]\ninput W: f32[3, 3, 2, 3] constant\n";
  const std::string good = ConvText(kShapes[0], "f32");
  EXPECT_THAT(refusal(good, 3), HasSubstr("m is 3; 2, 4 or 6"));
  EXPECT_THAT(refusal(ConvText(kShapes[0], "f16"), 2), HasSubstr("f16 is too coarse"));
  Shape padded = kShapes[0];
  padded.p = 3;
  EXPECT_THAT(refusal(ConvText(padded, "f32"), 2), HasSubstr("lie in the padding"));
  EXPECT_THAT(refusal(head + "output Y[n: 1, h: 4, w: 4, co: 3] = sum(r: 3, s: 3, ci: 2) X[n, 2*h "
                             "+ r, 2*w + s, ci] * W[r, s, ci, co]\n",
                      2),
              HasSubstr("stride"));
  EXPECT_THAT(refusal(head + "output Y[n: 1, h: 5, w: 5, co: 3] = sum(r: 3, s: 3, ci: 2) X[n, h + "
                             "2*r, w + 2*s, ci] * W[r, s, ci, co]\n",
                      2),
              HasSubstr("dilated"));
  EXPECT_THAT(refusal("workload conv\ninput X: f32[1, 9, 9, 2]\ninput W: f32[5, 3, 2, 3]\n"
                      "output Y[n: 1, h: 5, w: 7, co: 3] = sum(r: 5, s: 3, ci: 2) X[n, h + r, w + "
                      "s, ci] * W[r, s, ci, co]\n",
                      2),
              HasSubstr("5x3, not 3x3"));
  EXPECT_THAT(refusal("workload pool\ninput X: f32[1, 9, 9, 2]\n"
                      "output Y[n: 1, h: 7, w: 7, c: 2] = sum(r: 3, s: 3) X[n, h + r, w + s, c]\n",
                      2),
              HasSubstr("not a sum over three axes"));
  EXPECT_THAT(refusal("workload conv\ninput X: f32[1, 2, 9, 9]\ninput W: f32[3, 3, 2, 3]\n"
                      "output Y[n: 1, h: 7, w: 7, co: 3] = sum(r: 3, s: 3, ci: 2) X[n, ci, h + r, "
                      "w + s] * W[r, s, ci, co]\n",
                      2),
              HasSubstr("winograd: "));
}

TEST(RewriteRegistryTest, ArgumentsAreChecked) {
  const ir::Workload conv = Parsed(ConvText(kShapes[0], "f32"));
  EXPECT_THAT(std::string(ApplyRewriteTo(conv, "fft", "Y", {2}).status().message()),
              HasSubstr("known: "));
  EXPECT_THAT(std::string(ApplyRewriteTo(conv, "winograd", "Q", {2}).status().message()),
              HasSubstr("no stage computes"));
  EXPECT_THAT(std::string(ApplyRewriteTo(conv, "winograd", "Y", {}).status().message()),
              HasSubstr("takes 1 number (m), not 0"));
  for (size_t i = 1; i < Rewrites().size(); ++i)
    EXPECT_LT(Rewrites()[i - 1].name, Rewrites()[i].name);
}

}  // namespace
}  // namespace hone::schedule
