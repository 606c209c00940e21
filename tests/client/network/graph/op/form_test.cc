// The form of stages, which decides on what schedules can do with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/client/network/graph/op/apply.h"
#include "tests/golden.h"

namespace hone::graph {
namespace {

using ir::DType;

std::mt19937& Random() {
  static auto* const random = new std::mt19937(1);
  return *random;
}

TEST(FormTest, GuardsAreOnlyWherePaddingIs) {
  GoldenOfTest golden;
  const Given x = Floats({1, 4, 9, 9}, Random()), w = Floats({2, 4, 3, 3}, Random(), true);
  golden.Add(TextOf("Conv", {x, w}));
  golden.Add(TextOf("Conv", {x, w}, {{"pads", std::vector<int64_t>{1, 0, 1, 0}}}));
}

TEST(FormTest, ChannelsThatAreContiguousAreTheInnermostReduction) {
  const Given x = Floats({1, 9, 9, 4}, Random()), w = Floats({3, 3, 4, 2}, Random(), true);
  GoldenOfTest().Add(TextOf("Conv", {x, w}, {{"channels_last", int64_t{1}}}));
}

TEST(FormTest, DepthwiseConvolutionsReduceOverTapsAlone) {
  const Given x = Floats({1, 4, 9, 9}, Random()), w = Floats({4, 1, 3, 3}, Random(), true);
  GoldenOfTest().Add(TextOf("Conv", {x, w}, {{"group", int64_t{4}}}));
}

TEST(FormTest, PoolingDividesByANumberWithoutPadding) {
  const Given x = Floats({1, 4, 8, 8}, Random());
  const std::vector<int64_t> two = {2, 2};
  GoldenOfTest().Add(TextOf("AveragePool", {x}, {{"kernel_shape", two}, {"strides", two}}));
}

TEST(FormTest, BroadcastingKeepsAxesOfOneElement) {
  GoldenOfTest golden;
  const Given x = Floats({1, 4, 1}, Random()), y = Floats({1, 4, 1}, Random());
  golden.Add(TextOf("Add", {x, y}));
  golden.Add(TextOf("Add", {x, Floats({2, 1, 1}, Random())}));
}

TEST(FormTest, ReshapesReadPlainAxes) {
  GoldenOfTest golden;
  golden.Add(TextOf("Reshape", {Floats({2, 3, 4, 5}, Random()), List({2, 12, 5})}));
  golden.Add(TextOf("Reshape", {Floats({2, 12, 5}, Random()), List({2, 3, 4, 5})}));
}

TEST(FormTest, DoublingAnImageHalvesItsIndices) {
  GoldenOfTest golden;
  for (const std::string mode : {"asymmetric", "half_pixel"}) {
    golden.Add(TextOf(
        "Resize", {Floats({1, 1, 4, 4}, Random()), {}, {}, List({1, 1, 8, 8})},
        {{"coordinate_transformation_mode", mode},
         {"nearest_mode", std::string(mode == "asymmetric" ? "floor" : "round_prefer_floor")}}));
  }
}

TEST(FormTest, ZeroPointsThatAreZeroAreLeftOut) {
  GoldenOfTest golden;
  const Given a = Wholes(DType::kU8, {2, 4}, 0, 255, Random());
  const Given b = Wholes(DType::kI8, {4, 2}, -128, 127, Random(), true);
  const Given zero = Wholes(DType::kU8, {}, 0, 0, Random(), true);
  const Given three = Wholes(DType::kU8, {}, 3, 3, Random(), true);
  const std::string product = "sum(k: 4) i32(T0[i0, k]) * i32(T1[k, i1])";
  golden.Add(TextOf("MatMulInteger", {a, b, zero}));
  golden.Add(TextOf("MatMulInteger", {a, b, three}));
}

TEST(FormTest, ShortFloatsAreSummedInF32) {
  Given x = Floats({2, 4}, Random());
  x.type->dtype = DType::kF16;
  GoldenOfTest().Add(TextOf("Softmax", {x}));
}

}  // namespace
}  // namespace hone::graph
