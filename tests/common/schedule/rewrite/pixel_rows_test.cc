#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"

namespace hone::schedule {
namespace {

using testing::HasSubstr;

constexpr char kConvolution[] =
    "workload conv\ninput X: f32[2, 5, 6, 3]\ninput W: f32[3, 3, 3, 4] constant\n"
    "output Y[n: 2, h: 5, w: 6, o: 4] = sum(r: 3, s: 3, c: 3 where 0 <= h + r - 1 < 5, 0 <= w + s "
    "- 1 < 6) X[n, h + r - 1, w + s - 1, c] * W[r, s, c, o]\n";
constexpr char kStrided[] =
    "workload conv\ninput X: f32[2, 9, 11, 3]\ninput W: f32[3, 3, 3, 4] constant\n"
    "output Y[n: 2, h: 5, w: 6, o: 4] = sum(r: 3, s: 3, c: 3 where 0 <= 2*h + r - 1 < 9, 0 <= 2*w "
    "+ s - 1 < 11) X[n, 2*h + r - 1, 2*w + s - 1, c] * W[r, s, c, o]\n";

ir::Shape ShapeOfStage(const ir::Workload& workload, size_t stage) {
  return workload.tensors[workload.stages[stage].tensors[0]].shape;
}

TEST(PixelRowsTest, ACopyWithPaddingKeepsTheAxes) {
  const ir::Workload rewritten = ExactlyRewritten(kConvolution, "pixel_rows", "Y", {0, 1});
  ASSERT_EQ(rewritten.stages.size(), 2);
  EXPECT_EQ(ShapeOfStage(rewritten, 0), (ir::Shape{2, 7, 8, 3}));
  EXPECT_EQ(rewritten.stages[0].reducer, ir::Reducer::kNone);
  EXPECT_TRUE(rewritten.stages[1].guards.empty());
}

// 4·8 + 6 rows are needed, so 48 are computed; the last one reads 2·8 + 2 pixels on.
TEST(PixelRowsTest, LinesFollowEachOther) {
  const ir::Workload rewritten = ExactlyRewritten(kConvolution, "pixel_rows", "Y", {16, 1});
  ASSERT_EQ(rewritten.stages.size(), 3);
  EXPECT_EQ(ShapeOfStage(rewritten, 0), (ir::Shape{2, 48 + 18, 3}));
  EXPECT_EQ(ShapeOfStage(rewritten, 1), (ir::Shape{2, 48, 4}));
}

TEST(PixelRowsTest, AStrideGivesPatches) {
  const ir::Workload rewritten = ExactlyRewritten(kStrided, "pixel_rows", "Y", {16, 1});
  ASSERT_EQ(rewritten.stages.size(), 3);
  EXPECT_EQ(ShapeOfStage(rewritten, 0), (ir::Shape{2, 3, 3, 32, 3}));
  EXPECT_EQ(ShapeOfStage(rewritten, 1), (ir::Shape{2, 32, 4}));
}

TEST(PixelRowsTest, ChannelsAreAdded) {
  for (const int64_t multiple : {0, 16}) {
    for (const char* const text : {kConvolution, kStrided}) {
      const ir::Workload rewritten = ExactlyRewritten(text, "pixel_rows", "Y", {multiple, 8});
      EXPECT_EQ(ShapeOfStage(rewritten, 0), (ir::Shape{3, 3, 8, 4}));
      EXPECT_EQ(ShapeOfStage(rewritten, 1).back(), 8);
    }
  }
}

TEST(PixelRowsTest, Refusals) {
  EXPECT_THAT(Refusal("workload line\ninput X: f32[9, 2]\ninput W: f32[3, 2, 4]\n"
                      "output Y[l: 7, o: 4] = sum(r: 3, c: 2) X[l + r, c] * W[r, c, o]\n",
                      "pixel_rows", "Y", {16, 1}),
              HasSubstr("two neighbouring dimensions"));
  // Weights of each pixel.
  EXPECT_THAT(
      Refusal("workload local\ninput X: f32[9, 9, 2]\ninput W: f32[3, 3, 2, 7]\n"
              "output Y[h: 7, w: 7] = sum(r: 3, s: 3, c: 2) X[h + r, w + s, c] * W[r, s, c, w]\n",
              "pixel_rows", "Y", {16, 1}),
      HasSubstr("another index depends on the pixel"));
  EXPECT_THAT(Refusal(kConvolution, "pixel_rows", "Y", {-1, 1}),
              HasSubstr("a multiple of -1 rows"));
  EXPECT_THAT(Refusal(kConvolution, "pixel_rows", "Y", {0, 0}), HasSubstr("a multiple of 0 terms"));
  // The image is read twice.
  EXPECT_THAT(
      Refusal("workload similarity\ninput X: f32[9, 9, 2]\noutput Y[h: 7, w: 7] = sum(r: 3, "
              "s: 3, c: 2) X[h + r, w + s, c] * X[h, w, c]\n",
              "pixel_rows", "Y", {16, 1}),
      HasSubstr("not one of products of an image and another tensor"));
  EXPECT_THAT(
      Refusal("workload numbered\ninput X: f32[9, 9, 2]\ninput W: f32[3, 3, 2]\n"
              "output Y[h: 7, w: 7] = sum(r: 3, s: 3, c: 2) X[h + r, w + s, c] * W[r, s, c] "
              "* f32(index(h))\n",
              "pixel_rows", "Y", {16, 1}),
      HasSubstr("not one of products of an image and another tensor"));
  // The channel also moves the window.
  EXPECT_THAT(
      Refusal("workload skewed\ninput X: f32[9, 9, 3]\ninput W: f32[3, 3, 4]\n"
              "output Y[h: 7, w: 7, o: 4] = sum(s: 3, c: 3) X[h + c, w + s, c] * W[s, c, o]\n",
              "pixel_rows", "Y", {0, 8}),
      HasSubstr("the last dimension is not reduced on its own"));
  // Far taps of a small image.
  EXPECT_THAT(
      Refusal(
          "workload far\ninput X: f32[16, 16, 4]\ninput W: f32[3, 3, 4, 4]\n"
          "output Y[h: 16, w: 16, o: 4] = sum(r: 3, s: 3, c: 4 where 0 <= h + 400*r - 400 < 16, 0 "
          "<= w + 400*s - 400 < 16) X[h + 400*r - 400, w + 400*s - 400, c] * W[r, s, c, o]\n",
          "pixel_rows", "Y", {0, 1}),
      HasSubstr("elements, more than 16 times"));
}

TEST(JoinTapsTest, TapsAndChannelsAreOneAxis) {
  for (const char* const text : {kConvolution, kStrided}) {
    const ir::Workload rewritten = ExactlyRewritten(text, "join_taps", "Y", {8});
    ASSERT_EQ(rewritten.stages.size(), 3);
    EXPECT_EQ(ShapeOfStage(rewritten, 1), (ir::Shape{3, 16, 4}));
    ASSERT_EQ(rewritten.stages[2].reduce.size(), 2);
    EXPECT_EQ(rewritten.stages[2].reduce.back().extent, 16);
  }
}

TEST(PixelRowsTest, DilationAndOtherOrdersOfAxes) {
  constexpr char kDilated[] =
      "workload conv\ninput X: f32[2, 2, 7, 8, 3]\ninput W: f32[3, 3, 3, 4] constant\n"
      "output Y[a: 2, h: 7, w: 8, b: 2, o: 4] = sum(r: 3, s: 3, c: 3 where 0 <= h + 2*r - 2 < 7, 0 "
      "<= "
      "w + 2*s - 2 < 8) X[a, b, h + 2*r - 2, w + 2*s - 2, c] * W[r, s, c, o]\n";
  ExactlyRewritten(kDilated, "pixel_rows", "Y", {0, 8});
  ExactlyRewritten(kDilated, "pixel_rows", "Y", {14, 8});
}

TEST(JoinTapsTest, OtherSumsAreRefused) {
  // Added terms read pixels right of the window, so they must be multiplied by 0.
  EXPECT_THAT(
      Refusal("workload zp\ninput X: u8[9, 9, 3]\ninput W: u8[3, 3, 3, 4] constant\n"
              "output Y[h: 7, w: 7, o: 4] = sum(r: 3, s: 3, c: 3) i32(X[h + r, w + s, c]) * "
              "(i32(W[r, s, c, o]) - 128)\n",
              "join_taps", "Y", {8}),
      HasSubstr("not one of products of an image and another tensor"));
  EXPECT_THAT(Refusal("workload diagonal\ninput X: u8[18, 18, 3]\ninput W: i8[3, 3, 16] constant\n"
                      "output Y[h: 16, w: 16, o: 16] = sum(s: 3, c: 3) i32(X[h + s, w + s, c]) * "
                      "i32(W[s, c, o])\n",
                      "join_taps", "Y", {64}),
              HasSubstr("another index depends on the tap or the channel"));
  EXPECT_THAT(Refusal("workload both\ninput X: f32[9, 3]\ninput W: f32[3, 4]\n"
                      "output Y[w: 7, o: 4] = sum(s: 3) X[w + s, s] * W[s, o]\n",
                      "join_taps", "Y", {8}),
              HasSubstr("neighbouring taps do not read neighbouring columns"));
}

TEST(JoinTapsTest, ChannelsFirstAreRefused) {
  EXPECT_THAT(
      Refusal("workload first\ninput X: f32[3, 9, 9]\ninput W: f32[3, 3, 3, 4]\n"
              "output Y[o: 4, h: 7, w: 7] = sum(r: 3, s: 3, c: 3) X[c, h + r, w + s] * W[r, "
              "s, c, o]\n",
              "join_taps", "Y", {8}),
      HasSubstr("neighbouring taps do not read neighbouring columns"));
}

}  // namespace
}  // namespace hone::schedule
