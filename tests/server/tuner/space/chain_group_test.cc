#include "server/tuner/space/chain_group.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/server/tuner/space/workloads.h"

namespace hone::space {
namespace {

class ChainGroupTest : public testing::Test {
 protected:
  std::optional<ChainGroup> Find(absl::string_view text, absl::string_view last) {
    program_ = ir::Program::FromWorkload(MakeWorkload(text));
    return FindChainGroup(program_, program_.FindBlock(last), program_.AllBlocks());
  }
  // The names of the members; contractions in brackets.
  std::string Names(const ChainGroup& group) const {
    std::string names;
    for (const ChainGroup::Member& member : group.members) {
      const std::string& name = program_.BlockOf(member.block).name;
      absl::StrAppend(&names, names.empty() ? "" : " ",
                      member.contraction.has_value() ? absl::StrCat("[", name, "]") : name);
    }
    return names;
  }

  ir::Program program_ = ir::Program::FromWorkload(MakeWorkload("matmul m=1 n=1 k=1"));
};

TEST_F(ChainGroupTest, AttentionSharesBatchHeadsAndQueries) {
  const auto group = Find("attention b=2 h=3 s=40 d=16 t=48", "Y");
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(Names(*group), "[Scores] Max Exp Sum [Values] Y");
  EXPECT_EQ(group->rows, 3);
  EXPECT_EQ(group->batch, 6);
  EXPECT_EQ(group->height, 40);
  EXPECT_EQ(group->row_bytes, (48 + 1 + 48 + 1 + 16) * 4);
  EXPECT_EQ(group->vector_bytes, 2 * 48 * 16 * 4);
}

TEST_F(ChainGroupTest, DenseLayersShareTheirRows) {
  const auto group = Find("mlp m=32 k=16 h=64 n=24", "Y");
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(Names(*group), "[C1] Hidden [C2] Y");
  EXPECT_EQ(group->rows, 1);
}

TEST_F(ChainGroupTest, EndsInAContraction) {
  const auto group = Find("mlp m=32 k=16 h=64 n=24", "C2");
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(Names(*group), "[C1] Hidden [C2]");
}

TEST_F(ChainGroupTest, NeedsAContractionAfterAnother) {
  EXPECT_FALSE(Find("dense_gelu m=32 n=24 k=16", "Y").has_value());
  EXPECT_FALSE(Find("softmax m=32 n=24", "Y").has_value());
  EXPECT_FALSE(Find("workload sides\n"
                    "input A: f32[20, 12]\n"
                    "input B: f32[12, 40]\n"
                    "input C: f32[12, 40]\n"
                    "D[i: 20, j: 40] = sum(k: 12) A[i, k] * B[k, j]\n"
                    "E[i: 20, j: 40] = sum(k: 12) A[i, k] * C[k, j]\n"
                    "output Y[i: 20, j: 40] = D[i, j] * E[i, j]\n",
                    "Y")
                   .has_value());
}

// The example in chain_group.cc.
TEST_F(ChainGroupTest, OperandsThatAreNotReadAtTheirOwnRowsStayOutside) {
  constexpr char kText[] =
      "workload projected\n"
      "input Q: f32[20, 12]\n"
      "input X: f32[12, 30]\n"
      "input W: f32[30, 40]\n"
      "input V: f32[40, 16]\n"
      "K[d: 12, j: 40] = sum(c: 30) X[d, c] * W[c, j]\n"
      "S[i: 20, j: 40] = sum(d: 12) Q[i, d] * K[d, j]\n"
      "E[i: 20, j: 40] = max(S[i, j], 0.0)\n"
      "output Y[i: 20, e: 16] = sum(j: 40) E[i, j] * V[j, e]\n";
  const auto group = Find(kText, "Y");
  ASSERT_TRUE(group.has_value());
  EXPECT_EQ(Names(*group), "[S] E [Y]");
  EXPECT_EQ(group->rows, 1);
  EXPECT_EQ(group->batch, 1);
  EXPECT_EQ(group->height, 20);
  EXPECT_EQ(group->row_bytes, 320);
  EXPECT_EQ(group->vector_bytes, 4480);
  for (const char* last : {"K", "S", "E"}) EXPECT_FALSE(Find(kText, last).has_value()) << last;
}

TEST_F(ChainGroupTest, AResultThatOthersReadIsNotAMember) {
  constexpr char kText[] =
      "workload read_twice\n"
      "input A: f32[20, 12]\n"
      "input B: f32[12, 40]\n"
      "input C: f32[40, 16]\n"
      "S[i: 20, j: 40] = sum(k: 12) A[i, k] * B[k, j]\n"
      "output R[j: 40, i: 20] = S[i, j] + 1.0\n"
      "output Y[i: 20, j: 16] = sum(k: 40) S[i, k] * C[k, j]\n";
  EXPECT_FALSE(Find(kText, "Y").has_value());
}

TEST_F(ChainGroupTest, ComputedVectorsThatAreNotContiguousCannotBePacked) {
  EXPECT_FALSE(Find("workload across\n"
                    "input Q: f32[20, 12]\n"
                    "input X: f32[40, 12]\n"
                    "input V: f32[40, 16]\n"
                    "K[j: 40, d: 12] = X[j, d] * X[j, d]\n"
                    "S[i: 20, j: 40] = sum(d: 12) Q[i, d] * K[j, d]\n"
                    "output Y[i: 20, d: 16] = sum(j: 40) S[i, j] * V[j, d]\n",
                    "Y")
                   .has_value());
}

TEST_F(ChainGroupTest, GuardsAreNotSupported) {
  EXPECT_FALSE(Find("workload causal\n"
                    "input S: f32[40, 12]\n"
                    "input B: f32[12, 40]\n"
                    "input V: f32[40, 16]\n"
                    "C[i: 40, j: 40] = sum(k: 12) S[i, k] * B[k, j]\n"
                    "output Y[i: 40, d: 16] = sum(j: 40 where j <= i) C[i, j] * V[j, d]\n",
                    "Y")
                   .has_value());
}

}  // namespace
}  // namespace hone::space
