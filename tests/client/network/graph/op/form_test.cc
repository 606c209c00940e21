// The form of stages, which decides on what schedules can do with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/network/graph/op/apply.h"

namespace hone::graph {
namespace {

using ir::DType;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::mt19937& Random() {
  static auto* const random = new std::mt19937(1);
  return *random;
}

TEST(FormTest, GuardsAreOnlyWherePaddingIs) {
  const Given x = Floats({1, 4, 9, 9}, Random()), w = Floats({2, 4, 3, 3}, Random(), true);
  EXPECT_THAT(TextOf("Conv", {x, w}), Not(HasSubstr("where")));
  EXPECT_THAT(TextOf("Conv", {x, w}, {{"pads", std::vector<int64_t>{1, 0, 1, 0}}}),
              AllOf(HasSubstr("sum(k: 4, r0: 3, r1: 3 where 0 <= p0 + r0 - 1 < 9)"),
                    Not(HasSubstr("0 <= p1"))));
}

TEST(FormTest, ChannelsThatAreContiguousAreTheInnermostReduction) {
  const Given x = Floats({1, 9, 9, 4}, Random()), w = Floats({3, 3, 4, 2}, Random(), true);
  EXPECT_THAT(TextOf("Conv", {x, w}, {{"channels_last", int64_t{1}}}),
              HasSubstr("[n: 1, p0: 7, p1: 7, c: 2] = sum(r0: 3, r1: 3, k: 4) T0[n, p0 + r0, p1 + "
                        "r1, k] * T1[r0, r1, k, c]"));
}

TEST(FormTest, DepthwiseConvolutionsReduceOverTapsAlone) {
  const Given x = Floats({1, 4, 9, 9}, Random()), w = Floats({4, 1, 3, 3}, Random(), true);
  EXPECT_THAT(TextOf("Conv", {x, w}, {{"group", int64_t{4}}}),
              AllOf(HasSubstr("sum(r0: 3, r1: 3) T0[n, c, p0 + r0, p1 + r1] * T1[c, 0, r0, r1]")));
}

TEST(FormTest, PoolingDividesByANumberWithoutPadding) {
  const Given x = Floats({1, 4, 8, 8}, Random());
  const std::vector<int64_t> two = {2, 2};
  EXPECT_THAT(TextOf("AveragePool", {x}, {{"kernel_shape", two}, {"strides", two}}),
              HasSubstr("/ 4.0"));
}

TEST(FormTest, BroadcastingKeepsAxesOfOneElement) {
  const Given x = Floats({1, 4, 1}, Random()), y = Floats({1, 4, 1}, Random());
  EXPECT_THAT(TextOf("Add", {x, y}), HasSubstr("T0[i0, i1, i2] + T1[i0, i1, i2]"));
  EXPECT_THAT(TextOf("Add", {x, Floats({2, 1, 1}, Random())}),
              HasSubstr("T0[0, i1, i2] + T1[i0, 0, i2]"));
}

TEST(FormTest, ReshapesReadPlainAxes) {
  EXPECT_THAT(TextOf("Reshape", {Floats({2, 3, 4, 5}, Random()), List({2, 12, 5})}),
              HasSubstr("[i0, i1 / 4, i1 % 4, i2]"));
  EXPECT_THAT(TextOf("Reshape", {Floats({2, 12, 5}, Random()), List({2, 3, 4, 5})}),
              HasSubstr("[i0, 4*i1 + i2, i3]"));
}

TEST(FormTest, DoublingAnImageHalvesItsIndices) {
  for (const std::string mode : {"asymmetric", "half_pixel"}) {
    EXPECT_THAT(TextOf("Resize", {Floats({1, 1, 4, 4}, Random()), {}, {}, List({1, 1, 8, 8})},
                       {{"coordinate_transformation_mode", mode},
                        {"nearest_mode",
                         std::string(mode == "asymmetric" ? "floor" : "round_prefer_floor")}}),
                AllOf(HasSubstr("[i0, i1, i2 / 2, i3 / 2]"), Not(HasSubstr("where"))));
  }
}

TEST(FormTest, ZeroPointsThatAreZeroAreLeftOut) {
  const Given a = Wholes(DType::kU8, {2, 4}, 0, 255, Random());
  const Given b = Wholes(DType::kI8, {4, 2}, -128, 127, Random(), true);
  const Given zero = Wholes(DType::kU8, {}, 0, 0, Random(), true);
  const Given three = Wholes(DType::kU8, {}, 3, 3, Random(), true);
  const std::string product = "sum(k: 4) i32(T0[i0, k]) * i32(T1[k, i1])";
  EXPECT_THAT(TextOf("MatMulInteger", {a, b, zero}),
              AllOf(HasSubstr(product), Not(HasSubstr("columns"))));
  EXPECT_THAT(TextOf("MatMulInteger", {a, b, three}),
              AllOf(HasSubstr(product), HasSubstr("columns")));
}

TEST(FormTest, ShortFloatsAreSummedInF32) {
  Given x = Floats({2, 4}, Random());
  x.type->dtype = DType::kF16;
  EXPECT_THAT(TextOf("Softmax", {x}), HasSubstr("exp(f32("));
}

}  // namespace
}  // namespace hone::graph
