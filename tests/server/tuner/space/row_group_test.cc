#include "server/tuner/space/row_group.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/tuner/space/workloads.h"

namespace hone::space {
namespace {

class RowGroupTest : public testing::Test {
 protected:
  void Load(absl::string_view text) { program_ = ir::Program::FromWorkload(MakeWorkload(text)); }
  ir::NodeId Block(absl::string_view name) const { return program_.FindBlock(name); }
  std::string Names(absl::Span<const ir::NodeId> blocks) const {
    std::string names;
    for (const ir::NodeId block : blocks)
      absl::StrAppend(&names, names.empty() ? "" : " ", program_.BlockOf(block).name);
    return names;
  }
  std::string Members(absl::string_view last, int rows) const {
    return Names(RowMembers(program_, Block(last), program_.AllBlocks(), rows));
  }
  bool ReducesRowsAt(absl::string_view block) const {
    return ReducesRows(program_, program_.BlockOf(Block(block)));
  }

  ir::Program program_ = ir::Program::FromWorkload(MakeWorkload("matmul m=1 n=1 k=1"));
};

TEST_F(RowGroupTest, SoftmaxIsAGroup) {
  Load("softmax m=12 n=96");
  const auto group = FindRowGroup(program_, Block("Y"), program_.AllBlocks());
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(group->blocks.size(), program_.AllBlocks().size());
  EXPECT_EQ(group->rows, 1);
  EXPECT_EQ(group->row_points, 96);
}

// Its products have columns, so they do not reduce rows.
TEST_F(RowGroupTest, AChainOfContractionsIsNotAGroup) {
  Load("attention b=1 h=2 s=20 d=16");
  EXPECT_FALSE(FindRowGroup(program_, Block("Y"), program_.AllBlocks()).has_value());
}

TEST_F(RowGroupTest, MembersKeepToTheirRows) {
  Load("attention b=1 h=2 s=20 d=16");
  EXPECT_EQ(Members("Y", 3), "Scores Max Exp Sum Values Y");
  EXPECT_EQ(Members("Y", 4), "Values Y");  // the others have no axis d
  // Sum reads Exp, too, and is not a member.
  EXPECT_EQ(Members("Values", 3), "Values");
}

TEST_F(RowGroupTest, ABlockThatAReaderReadsAtOtherRowsStaysOutside) {
  Load(
      "workload shifted\n"
      "input X: f32[20, 30]\n"
      "A[i: 20, j: 30] = X[i, j] + 1.0\n"
      "B[i: 19, j: 30] = A[i, j] * A[i + 1, j]\n"
      "output Y[i: 19, j: 30] = B[i, j] + 1.0\n");
  EXPECT_EQ(Members("Y", 0), "A B Y");
  EXPECT_EQ(Members("Y", 1), "B Y");
}

TEST_F(RowGroupTest, OnlyOpenBlocksAreMembers) {
  Load("softmax m=12 n=96");
  EXPECT_EQ(Names(RowMembers(program_, Block("Y"), {}, 1)), "Y");
}

TEST_F(RowGroupTest, LanesOfARowLieAlongItsReduction) {
  Load(
      "workload sums\n"
      "input X: f32[20, 30]\n"
      "R[i: 20] = sum(j: 30) X[i, j]\n"
      "C[j: 30] = sum(i: 20) X[i, j]\n"
      "output Y[i: 20, j: 30] = R[i] + C[j]\n");
  EXPECT_TRUE(ReducesRowsAt("R"));
  EXPECT_FALSE(ReducesRowsAt("C"));
  EXPECT_FALSE(ReducesRowsAt("Y"));
}

TEST_F(RowGroupTest, ATupleIsAGroupThatItEnds) {
  Load(
      "workload best\n"
      "input X: f32[20, 30]\n"
      "S[i: 20] = sum(j: 30) X[i, j]\n"
      "output (V, I)[i: 20] = argmax(j: 30) (X[i, j] * S[i], index(j))\n");
  const auto group = FindRowGroup(program_, Block("V"), program_.AllBlocks());
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(Names(group->blocks), "S V");
  Load(
      "workload shifted\n"
      "input X: f32[20, 30]\n"
      "(V, I)[i: 20] = argmax(j: 30) (X[i, j], index(j))\n"
      "output Y[i: 20, j: 30] = X[i, j] - V[i]\n");
  EXPECT_FALSE(FindRowGroup(program_, Block("Y"), program_.AllBlocks()).has_value());
  EXPECT_TRUE(FindRowGroup(program_, Block("V"), program_.AllBlocks()).has_value());
}

// Rows of a table that are added up: the rows' numbers are consecutive along the sum, the elements
// along the columns.
TEST_F(RowGroupTest, ComputedIndicesAreNotConsecutive) {
  Load(
      "workload bag\n"
      "input T: f32[50, 16]\n"
      "input N: i32[9, 30] < 50\n"
      "input M: i32[30] < 16\n"
      "B[i: 9, j: 16] = sum(k: 30) T[at(N[i, k]), j]\n"
      "C[i: 9] = sum(k: 30) T[i, at(M[k])]\n"
      "output Y[i: 9, j: 16] = B[i, j] + C[i]\n");
  const ir::Block& bag = program_.BlockOf(Block("B"));
  EXPECT_TRUE(IsContiguousAlong(program_, bag, 1));
  EXPECT_FALSE(IsContiguousAlong(program_, bag, 2));
  EXPECT_FALSE(ReducesRowsAt("B"));
  EXPECT_FALSE(ReducesRowsAt("C"));
}

}  // namespace
}  // namespace hone::space
