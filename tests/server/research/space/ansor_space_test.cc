// Ansor's rules: the order of the tiles, and that every candidate computes the workload.
#include "server/research/space/ansor_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/algorithm/container.h"
#include "common/ir/interpreter.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::unique_ptr<DesignSpace>> Spaces(absl::string_view text,
                                                 const target::Target& target) {
  auto spaces = MakeSpaces({.workload = MakeWorkload(text), .target = &target}, "ansor");
  EXPECT_THAT(spaces, IsOk()) << text;
  return spaces.ok() ? *std::move(spaces) : std::vector<std::unique_ptr<DesignSpace>>();
}

std::vector<std::string> NamesOfSpaces(const std::vector<std::unique_ptr<DesignSpace>>& spaces) {
  std::vector<std::string> names;
  for (const auto& space : spaces) names.push_back(space->name());
  return names;
}

TEST(AnsorSpace, TilesInThePublishedOrder) {
  const auto spaces = Spaces("matmul m=512 n=512 k=512", Avx512());
  EXPECT_THAT(NamesOfSpaces(spaces),
              testing::UnorderedElementsAre("ssrsrs", "ssrsrs_cache_at1", "ssrsrs_cache_at2"));
  const auto plain = absl::c_find_if(spaces, [](const auto& s) { return s->name() == "ssrsrs"; });
  ASSERT_NE(plain, spaces.end());
  // Four parts of i and j, two of k; then the order i0 j0 i1 j1 k0 i2 j2 k1 i3 j3.
  EXPECT_THAT((*plain)->text(), HasSubstr("sample_perfect_tile(l0, parts=4, max_inner=64)"));
  EXPECT_THAT((*plain)->text(), HasSubstr("sample_perfect_tile(l2, parts=2, max_inner=64)"));
  EXPECT_THAT((*plain)->text(), HasSubstr("reorder(l3, l7, l4, l8, l11, l5, l9, l12, l6, l10)\n"));
}

TEST(AnsorSpace, FusesTheConsumerAtBothLevels) {
  const std::vector<std::string> names =
      NamesOfSpaces(Spaces("dense_relu m=64 n=128 k=96", Avx512()));
  EXPECT_THAT(names, Contains(StartsWith("ssrsrs_fused_at1")));
  EXPECT_THAT(names, Contains(StartsWith("ssrsrs_fused_at2")));
}

TEST(AnsorSpace, OnGpusItUsesTilesOfBlocksAndThreads) {
  const target::Target gpu = *target::TargetByName("nvidia/a100");
  for (const auto& space : Spaces("matmul m=256 n=256 k=256", gpu))
    EXPECT_THAT(space->text(), HasSubstr("threadIdx"));
}

class AnsorWorkload : public testing::TestWithParam<const char*> {};

TEST_P(AnsorWorkload, EveryCandidateComputesTheWorkload) {
  constexpr int kCandidates = 10;
  const auto workload = MakeWorkload(GetParam());
  const std::vector<ir::Values> inputs = SmallIntegers(*workload, 3);
  const std::vector<ir::Values> wanted = ir::Interpret(*workload, inputs).value();
  for (const auto& space : Spaces(GetParam(), Avx512())) {
    int replayed = 0;
    for (uint64_t i = 0; i < kCandidates; ++i) {
      Rng rng(11, i);
      const auto drawn = space->Sample(rng);
      ASSERT_THAT(drawn, IsOk()) << space->name();
      const auto program = space->Replay(*drawn);
      if (!program.ok()) continue;
      ++replayed;
      const auto computed = ir::Interpret(*program, inputs);
      ASSERT_THAT(computed, IsOk()) << program->ToText();
      ASSERT_EQ(*computed, wanted) << program->ToText();
    }
    EXPECT_GE(replayed, kCandidates - 1) << space->name();
  }
}

INSTANTIATE_TEST_SUITE_P(All, AnsorWorkload,
                         testing::Values("matmul m=24 n=40 k=12", "matmul m=17 n=13 k=7",
                                         "dense_relu m=36 n=64 k=6", "matmul m=8 n=8 k=512",
                                         "conv2d n=1 h=9 w=9 ci=4 co=32 k=3 s=2 p=1",
                                         "conv2d_bn_relu n=1 h=6 w=6 ci=5 co=18 k=3 s=1 p=1",
                                         "depthwise_conv2d n=1 h=8 w=9 c=20 k=3 s=1 p=1",
                                         "softmax m=9 n=20"));

}  // namespace
}  // namespace hone::space
