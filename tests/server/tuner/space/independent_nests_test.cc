// Workloads of several computations that share inputs only: the number of design spaces does not
// multiply, and every alternative of each computation is offered.

#include <gtest/gtest.h>

#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/tuner/space/generate.h"
#include "server/tuner/space/part_spaces.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

// `count` products with the same left matrix. The first is 512 columns wide, and each further one
// is `widen` columns wider.
std::string Projections(int count, int widen) {
  std::string text = "workload projections\ninput X: f32[128, 256]\n";
  for (int i = 0; i < count; ++i)
    absl::StrAppend(&text, "input W", i, ": f32[256, ", 512 + widen * i, "]\n");
  for (int i = 0; i < count; ++i) {
    absl::StrAppend(&text, "output C", i, "[i: 128, j: ", 512 + widen * i,
                    "] = sum(k: 256) X[i, k] * W", i, "[k, j]\n");
  }
  return text;
}

std::vector<std::unique_ptr<DesignSpace>> Generate(absl::string_view text) {
  auto spaces =
      GenerateDesignSpaces(MakeWorkload(text), target::TargetByName("x86-avx512").value());
  EXPECT_THAT(spaces, IsOk());
  return spaces.ok() ? *std::move(spaces) : std::vector<std::unique_ptr<DesignSpace>>();
}

// The alternative chosen for each product, in order: "ij_ji" and the like.
std::vector<std::string> TilingsIn(const DesignSpace& space) {
  std::vector<std::string> tilings;
  for (absl::string_view tiling : absl::StrSplit(space.name(), "tile_", absl::SkipEmpty()))
    tilings.emplace_back(tiling.substr(0, 5));
  return tilings;
}

TEST(StageComponents, AreConnectedByReads) {
  EXPECT_EQ(StageComponents(*MakeWorkload(Projections(3, 0))), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(StageComponents(*MakeWorkload("softmax m=8 n=8")),
            std::vector<int>(MakeWorkload("softmax m=8 n=8")->stages.size(), 0));
  // C joins A and B, which do not read each other; D is independent.
  EXPECT_EQ(StageComponents(*MakeWorkload("workload joined\n"
                                          "input X: f32[4, 8]\n"
                                          "A[i: 4] = sum(k: 8) X[i, k]\n"
                                          "output D[i: 4] = min(k: 8) X[i, k]\n"
                                          "B[i: 4] = max(k: 8) X[i, k]\n"
                                          "output C[i: 4] = A[i] + B[i]\n")),
            (std::vector<int>{0, 1, 0, 0}));
}

class IndependentProducts : public testing::TestWithParam<int> {};

TEST_P(IndependentProducts, HaveAsManySpacesAsOne) {
  EXPECT_EQ(Generate(Projections(GetParam(), 0)).size(), Generate(Projections(1, 0)).size());
}

TEST_P(IndependentProducts, AreEachOfferedEveryTiling) {
  std::set<std::string> alone;
  for (const auto& space : Generate(Projections(1, 0))) alone.insert(TilingsIn(*space)[0]);
  ASSERT_GT(alone.size(), 2u);
  std::vector<std::set<std::string>> offered(GetParam());
  for (const auto& space : Generate(Projections(GetParam(), 16))) {
    const std::vector<std::string> tilings = TilingsIn(*space);
    ASSERT_EQ(tilings.size(), offered.size()) << space->name();
    for (size_t i = 0; i < tilings.size(); ++i) offered[i].insert(tilings[i]);
  }
  for (const std::set<std::string>& tilings : offered) EXPECT_EQ(tilings, alone);
}

INSTANTIATE_TEST_SUITE_P(All, IndependentProducts, testing::Values(2, 3, 5));

// A product with many alternatives next to a sum with few: both keep all of theirs.
TEST(IndependentComputations, WithFewAlternativesGoThroughThemInTurn) {
  const size_t product = Generate(Projections(1, 0)).size();
  const auto spaces = Generate(absl::StrCat(Projections(1, 0),
                                            "output S[i: 128] = sum(k: 256) X[i, k]\n"
                                            "output E[i: 128, k: 256] = X[i, k] * 2.0\n"));
  EXPECT_EQ(spaces.size(), product);
}

TEST(IndependentComputations, ThreeDistancesHaveFewSpaces) {
  EXPECT_LE(Generate("workload distances\n"
                     "input A: f32[33, 9]\n"
                     "input B: f32[41, 9]\n"
                     "output L2[i: 33, j: 41] = sum(k: 9) ((A[i, k] - B[j, k]) * (A[i, k] - B[j, "
                     "k]))\n"
                     "output L1[i: 33, j: 41] = sum(k: 9) abs((A[i, k] - B[j, k]))\n"
                     "output Li[i: 33, j: 41] = max(k: 9) abs((A[i, k] - B[j, k]))\n")
                .size(),
            8u);
}

}  // namespace
}  // namespace hone::space
