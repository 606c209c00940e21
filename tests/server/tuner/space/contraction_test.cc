#include <gtest/gtest.h>

#include "server/tuner/space/block_kind.h"
#include "tests/server/tuner/space/workloads.h"

namespace hone::space {
namespace {

class ContractionTest : public testing::Test {
 protected:
  std::optional<Contraction> Analyze(absl::string_view text, absl::string_view block) {
    program_ = ir::Program::FromWorkload(MakeWorkload(text));
    id_ = program_.FindBlock(block);
    return AnalyzeContraction(program_, id_);
  }
  std::string Axis(int axis) const {
    return program_.atoms[program_.BlockOf(id_).iters[axis].var].name;
  }

  ir::Program program_ = ir::Program::FromWorkload(MakeWorkload("matmul m=1 n=1 k=1"));
  ir::NodeId id_ = ir::kNoNode;
};

TEST_F(ContractionTest, Matmul) {
  const auto c = Analyze("matmul m=8 n=9 k=10", "C");
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(Axis(c->row), "i");
  EXPECT_EQ(Axis(c->vector), "j");
  EXPECT_EQ(Axis(c->reduce), "k");
  EXPECT_EQ(c->row_operand.panel_dimension, 0);
  EXPECT_EQ(c->vector_operand.panel_dimension, 1);
  EXPECT_EQ(c->vector_operand.reduces, (std::vector<bool>{true, false}));
  EXPECT_TRUE(c->vector_contiguous);
  EXPECT_TRUE(c->shared.empty() && c->row_like.empty() && c->windows.empty());
}

TEST_F(ContractionTest, BatchAxisIsShared) {
  const auto c = Analyze("batch_matmul b=2 m=8 n=9 k=10", "C");
  ASSERT_TRUE(c.has_value());
  ASSERT_EQ(c->shared.size(), 1u);
  EXPECT_EQ(Axis(c->shared[0]), "b");
}

TEST_F(ContractionTest, ConvolutionTakesTheRowOfTheImage) {
  const auto c = Analyze("conv2d n=2 h=14 w=14 ci=16 co=32 k=3 s=1 p=1", "Y");
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(Axis(c->row), "w");
  EXPECT_EQ(Axis(c->vector), "co");
  EXPECT_EQ(Axis(c->reduce), "ci");
  ASSERT_EQ(c->row_like.size(), 2u);
  ASSERT_EQ(c->windows.size(), 2u);
  EXPECT_EQ(Axis(c->windows[0]), "r");
  EXPECT_EQ(c->row_operand.panel_dimension, -1);  // indexed by a window
  EXPECT_EQ(c->vector_operand.panel_dimension, 3);
}

TEST_F(ContractionTest, ANarrowImageGivesTheRowsToAnotherAxis) {
  const auto c = Analyze("conv2d n=16 h=8 w=1 ci=16 co=32 k=1 s=1 p=0", "Y");
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(Axis(c->row), "h");
}

TEST_F(ContractionTest, ATransposedOperandIsNotContiguous) {
  const auto c = Analyze(
      "workload nt\ninput A: f32[4, 6]\ninput B: f32[8, 6]\noutput C[i: 4, j: 8] = sum(k: 6) A[i, "
      "k] * B[j, k]\n",
      "C");
  ASSERT_TRUE(c.has_value());
  EXPECT_FALSE(c->vector_contiguous);
  EXPECT_EQ(c->vector_operand.panel_dimension, 0);
}

TEST_F(ContractionTest, ASquareReadTwiceCannotBePacked) {
  const auto c = Analyze(
      "workload gram\ninput A: f32[8, 8]\noutput C[i: 8, j: 8] = sum(k: 8) A[i, k] * A[k, j]\n",
      "C");
  ASSERT_TRUE(c.has_value());
  EXPECT_EQ(c->row_operand.panel_dimension, -1);
  EXPECT_EQ(c->vector_operand.panel_dimension, -1);
}

TEST_F(ContractionTest, OtherStagesAreNotContractions) {
  EXPECT_FALSE(Analyze("workload m\ninput A: f32[4, 6]\noutput C[i: 4] = max(k: 6) A[i, k]\n", "C")
                   .has_value());
  EXPECT_FALSE(
      Analyze("workload e\ninput A: f32[4, 6]\noutput C[i: 4, j: 6] = A[i, j]\n", "C").has_value());
  EXPECT_FALSE(
      Analyze("workload t\ninput A: f32[6]\noutput C[i: 1] = sum(k: 6) A[k]\n", "C").has_value());
}

TEST(WindowTest, SlidesAlongTheVectorsOfAnImageWithChannelsFirst) {
  const auto window = [](absl::string_view text) {
    const auto program = ir::Program::FromWorkload(MakeWorkload(text));
    return AnalyzeWindow(program, program.BlockOf(program.AllBlocks()[0]));
  };
  const auto depthwise = window("conv2d_nchw n=1 h=14 w=14 ci=8 co=8 k=3 groups=8");
  ASSERT_TRUE(depthwise.has_value());
  EXPECT_TRUE(depthwise->slides_along_vectors);
  EXPECT_FALSE(window("depthwise_conv2d n=1 h=14 w=14 c=8 k=3")->slides_along_vectors);
  // Neighbouring results read every other element, or share elements, or there is no window.
  EXPECT_FALSE(window("conv2d_nchw n=1 h=14 w=14 ci=8 co=8 k=3 s=2 groups=8").has_value());
  EXPECT_FALSE(window("conv2d_nchw n=1 h=14 w=14 ci=8 co=8 k=3 groups=4").has_value());
  EXPECT_FALSE(window("matmul m=1 n=64 k=64").has_value());
}

}  // namespace
}  // namespace hone::space
