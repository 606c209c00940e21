#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/schedule/rewrite/rewrite.h"
#include "tests/common/schedule/rewrite/rewrite_check.h"

namespace hone::schedule {
namespace {

using testing::HasSubstr;

const ir::Shape& ShapeOf(const ir::Workload& workload, absl::string_view name) {
  static const ir::Shape none;
  for (const ir::Tensor& tensor : workload.tensors) {
    if (tensor.name == name) return tensor.shape;
  }
  return none;
}

// Whether some index contains a quotient or a remainder.
bool Divides(const ir::Workload& workload) {
  bool divides = false;
  for (const ir::Stage& stage : workload.stages) {
    for (const ir::ExprId value : stage.values) {
      workload.pool.VisitLoads(value, [&](const ir::Expr& load) {
        for (const ir::Index& index : workload.pool.IndicesOf(load)) {
          for (const ir::IndexTerm& term : index.terms())
            divides |= workload.atoms[term.atom].kind != ir::Atom::Kind::kVar;
        }
      });
    }
  }
  return divides;
}

// A grouped 1×1 convolution with channels first is a batch of products over all pixels.
TEST(RegroupAxesTest, PointwiseConvolutionWithChannelsFirst) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload conv\ninput X: f32[2, 15, 3, 4]\ninput W: f32[21, 5, 1, 1] constant\n"
      "output Y[n: 2, c: 21, h: 3, w: 4] = sum(k: 5, r: 1, s: 1) "
      "X[n, k + c / 7 * 5, h + r, w + s] * W[c, k, r, s]\n",
      "regroup_axes", "Y", {});
  EXPECT_FALSE(Divides(rewritten));
  EXPECT_EQ(ShapeOf(rewritten, "X"), (ir::Shape{2, 3, 5, 12}));
  EXPECT_EQ(ShapeOf(rewritten, "W"), (ir::Shape{3, 7, 5}));
  EXPECT_EQ(ShapeOf(rewritten, "Y"), (ir::Shape{2, 3, 7, 12}));
  EXPECT_EQ(rewritten.stages[0].reduce.size(), 1);
}

TEST(RegroupAxesTest, PointwiseConvolutionWithChannelsLast) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload conv\ninput X: f32[2, 3, 4, 15]\ninput W: f32[1, 1, 5, 21] constant\n"
      "output Y[n: 2, h: 3, w: 4, c: 21] = sum(r: 1, s: 1, k: 5) "
      "X[n, h + r, w + s, k + c / 7 * 5] * W[r, s, k, c]\n",
      "regroup_axes", "Y", {});
  EXPECT_FALSE(Divides(rewritten));
  EXPECT_EQ(ShapeOf(rewritten, "X"), (ir::Shape{24, 3, 5}));
  EXPECT_EQ(ShapeOf(rewritten, "Y"), (ir::Shape{24, 3, 7}));
}

// Only the channels are divided: the windows slide over rows and columns.
TEST(RegroupAxesTest, PaddedWindow) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload conv\ninput X: f32[2, 6, 5, 7]\ninput W: f32[8, 3, 3, 3] constant\n"
      "output Y[n: 2, c: 8, h: 3, w: 4] = sum(k: 3, r: 3, s: 3 where 0 <= 2*h + r - 1 < 5, 0 <= "
      "2*w + s - 1 < 7) X[n, k + c / 4 * 3, 2*h + r - 1, 2*w + s - 1] * W[c, k, r, s]\n",
      "regroup_axes", "Y", {});
  EXPECT_FALSE(Divides(rewritten));
  EXPECT_EQ(ShapeOf(rewritten, "X"), (ir::Shape{2, 2, 3, 5, 7}));
  EXPECT_EQ(ShapeOf(rewritten, "Y"), (ir::Shape{2, 2, 4, 3, 4}));
}

// The stages before and after the convolution, and their constants and inputs, get the same axes.
TEST(RegroupAxesTest, NeighboursFollow) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload unit\ninput X: f32[1, 6, 3, 4]\ninput W: f32[8, 3, 1, 1] constant\n"
      "input B: f32[8] constant\ninput R: f32[1, 8, 3, 4]\n"
      "P[n: 1, c: 6, h: 3, w: 4] = max(X[n, c, h, w], 0.0)\n"
      "C[n: 1, c: 8, h: 3, w: 4] = sum(k: 3, r: 1, s: 1) "
      "P[n, k + c / 4 * 3, h + r, w + s] * W[c, k, r, s]\n"
      "D[n: 1, c: 8, h: 3, w: 4] = C[n, c, h, w] + B[c]\n"
      "output Y[n: 1, c: 8, h: 3, w: 4] = max(D[n, c, h, w] + R[n, c, h, w], 0.0)\n",
      "regroup_axes", "C", {});
  EXPECT_FALSE(Divides(rewritten));
  EXPECT_EQ(ShapeOf(rewritten, "B"), (ir::Shape{2, 4}));
  for (const char* name : {"C", "D", "Y"}) {
    EXPECT_EQ(ShapeOf(rewritten, name), (ir::Shape{2, 4, 12})) << name;
  }
}

// A channel shuffle after a grouped convolution exchanges two axes.
TEST(RegroupAxesTest, ShuffledChannels) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload unit\ninput X: f32[2, 6, 3, 4]\ninput W: f32[10, 3, 1, 1] constant\n"
      "C[n: 2, c: 10, h: 3, w: 4] = sum(k: 3, r: 1, s: 1) "
      "X[n, k + c / 5 * 3, h + r, w + s] * W[c, k, r, s]\n"
      "output Y[n: 2, c: 10, h: 3, w: 4] = max(C[n, c % 2 * 5 + c / 2, h, w], 0.0)\n",
      "regroup_axes", "C", {});
  EXPECT_FALSE(Divides(rewritten));
  EXPECT_EQ(ShapeOf(rewritten, "C"), (ir::Shape{2, 2, 5, 12}));
  EXPECT_EQ(ShapeOf(rewritten, "Y"), (ir::Shape{2, 5, 2, 12}));
}

// The channels of a group are read from several places, if the number of groups divides them.
TEST(RegroupAxesTest, ConvolutionOfShuffledChannels) {
  const ir::Workload even = ExactlyRewritten(
      "workload conv\ninput X: f32[5, 8]\ninput W: f32[4, 6] constant\n"
      "output Y[p: 5, c: 6] = sum(k: 4) X[p, (k + c / 3 * 4) % 2 * 4 + (k + c / 3 * 4) / 2] * "
      "W[k, c]\n",
      "regroup_axes", "Y", {});
  EXPECT_FALSE(Divides(even));
  const ir::Workload odd = ExactlyRewritten(
      "workload conv\ninput X: f32[5, 6]\ninput W: f32[3, 6] constant\n"
      "output Y[p: 5, c: 6] = sum(k: 3) X[p, (k + c / 3 * 3) % 2 * 3 + (k + c / 3 * 3) / 2] * "
      "W[k, c]\n",
      "regroup_axes", "Y", {});
  EXPECT_EQ(ShapeOf(odd, "Y"), (ir::Shape{5, 2, 3}));
}

// Axes that only some tensors index together stay apart.
TEST(RegroupAxesTest, BroadcastsKeepTheAxesApart) {
  EXPECT_THAT(
      Refusal("workload rows\ninput A: f32[2, 3, 4, 5]\ninput B: f32[5, 6]\ninput S: f32[3]\n"
              "C[a: 2, b: 3, i: 4, j: 6] = sum(k: 5) A[a, b, i, k] * B[k, j]\n"
              "output Y[a: 2, b: 3, i: 4, j: 6] = C[a, b, i, j] * S[b]\n",
              "regroup_axes", "C", {}),
      HasSubstr("no two of its axes can be joined"));
}

TEST(RegroupAxesTest, BatchesOfRowsAreJoined) {
  const ir::Workload rewritten = ExactlyRewritten(
      "workload rows\ninput A: f32[2, 3, 4, 5]\ninput B: f32[5, 6]\n"
      "C[a: 2, b: 3, i: 4, j: 6] = sum(k: 5) A[a, b, i, k] * B[k, j]\n"
      "output Y[a: 2, b: 3, i: 4, j: 6] = max(C[a, b, i, j], 0.0)\n",
      "regroup_axes", "C", {});
  EXPECT_EQ(ShapeOf(rewritten, "A"), (ir::Shape{24, 5}));
  EXPECT_EQ(ShapeOf(rewritten, "Y"), (ir::Shape{24, 6}));
}

TEST(RegroupAxesTest, Refusals) {
  EXPECT_THAT(Refusal("workload matmul\ninput A: f32[3, 10]\ninput B: f32[10, 4]\noutput C[i: 3, "
                      "j: 4] = sum(k: 10) A[i, k] * B[k, j]\n",
                      "regroup_axes", "C", {}),
              HasSubstr("no two of its axes can be joined"));
  EXPECT_THAT(Refusal("workload deep\ninput X: f32[2, 2, 2, 2, 2, 2, 2, 4]\n"
                      "output Y[a: 2, b: 2, c: 2, d: 2, e: 2, f: 2, g: 2, h: 4] = sum(k: 2) "
                      "X[a, b, c, d, e, f, g, k + h / 2 * 2]\n",
                      "regroup_axes", "Y", {}),
              HasSubstr("more than 8 dimensions"));
}

}  // namespace
}  // namespace hone::schedule
