// The design spaces of chains of contractions, such as attention and consecutive dense layers.

#include <gtest/gtest.h>

#include <set>

#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

std::set<std::string> Names(absl::string_view text, const target::Target& target) {
  std::set<std::string> names;
  const auto spaces = GenerateDesignSpaces(MakeWorkload(text), target);
  EXPECT_THAT(spaces, IsOk()) << text;
  if (!spaces.ok()) return names;
  for (const auto& space : *spaces) EXPECT_TRUE(names.insert(space->name()).second);
  return names;
}

// The design space of a workload's chain of contractions; null if there is none.
std::unique_ptr<DesignSpace> Chain(absl::string_view text, const target::Target& target) {
  auto spaces = GenerateDesignSpaces(MakeWorkload(text), target);
  EXPECT_THAT(spaces, IsOk()) << text;
  if (!spaces.ok()) return nullptr;
  for (auto& space : *spaces) {
    if (space->name() == "chain") return std::move(space);
  }
  return nullptr;
}

TEST(RowChain, ContractionsOfAChainShareABlockOfRowsThatFitsTheCache) {
  target::Target target = Avx512();
  target.cores = 8;
  target.l2_bytes = 1 << 20;
  const auto space = Chain("attention b=1 h=2 s=1024 d=64", target);
  ASSERT_NE(space, nullptr);
  std::set<int64_t> heights;
  for (uint64_t i = 0; i < 50; ++i) {
    Rng rng(23, i);
    const std::vector<int64_t> decisions = space->Sample(rng).value();
    const ir::Program program = space->Replay(decisions).value();
    const std::vector<ir::NodeId> loops = program.LoopsAbove(program.FindBlock("Exp"));
    for (const char* name : {"Scores", "Max", "Sum", "Values", "Y"})
      EXPECT_EQ(program.LoopsAbove(program.FindBlock(name))[0], loops[0]) << program.ToText();
    EXPECT_EQ(program.node(loops[0]).loop, ir::LoopKind::kParallel);
    EXPECT_GE(program.node(loops[0]).extent.value, 8);
    // A row of Scores and a row of Exp have 8 KiB together. A single register tile is always
    // allowed.
    const int64_t rows = program.node(loops[3]).extent.value, tile = decisions[0];
    EXPECT_TRUE(rows * (8 << 10) <= 1 << 20 || rows == tile) << program.ToText();
    heights.insert(rows / tile);
  }
  EXPECT_GE(heights.size(), 4u);
  EXPECT_TRUE(heights.contains(1));
}

// Other tests draw candidates from all spaces of attention, few of them from its chain.
TEST(RowChain, CandidatesOfAChainReplayAndDiffer) {
  for (const target::Target& target : {Avx512(), Avx2()}) {
    for (const char* text :
         {"attention b=1 h=12 s=128 d=64", "attention b=2 h=3 s=197 d=80 t=333",
          "attention b=1 h=8 s=4096 d=40", "attention b=1 h=2 s=61 d=40 dtype=f16",
          "mlp m=500 k=100 h=300 n=77"}) {
      constexpr int kCandidates = 200;
      const auto space = Chain(text, target);
      ASSERT_NE(space, nullptr) << text;
      int invalid = 0, repeated = 0;
      std::set<Digest> programs;
      for (uint64_t i = 0; i < kCandidates; ++i) {
        Rng rng(29, i);
        const auto program = space->Replay(space->Sample(rng).value());
        invalid += !program.ok();
        repeated += program.ok() && !programs.insert(program->StructuralDigest()).second;
      }
      EXPECT_LE(invalid * 50, kCandidates) << text;
      EXPECT_LE(repeated * 100, kCandidates) << text;
    }
  }
}

TEST(RowChain, VectorsOfAChainThatAreNotContiguousAreCopiedIntoPanels) {
  const auto space = Chain("attention b=1 h=2 s=128 d=64", Avx512());
  ASSERT_NE(space, nullptr);
  EXPECT_NE(space->text().find("\"K\", \"global\""), std::string::npos) << space->text();
  EXPECT_EQ(space->text().find("\"V\", \"global\""), std::string::npos) << space->text();
}

TEST(RowChain, OnlyTheLongestChainIsOffered) {
  int chains = 0;
  for (const std::string& name : Names("mlp m=512 k=64 h=128 n=64", Avx512()))
    chains += name.find("chain") != std::string::npos;
  EXPECT_EQ(chains, 1);
}

TEST(RowChain, WholeTensorsGetOnlyTheMainAlternativesIfTheyLeaveTheCaches) {
  target::Target target = Avx512();
  target.l2_bytes = 1 << 20;
  const std::set<std::string> long_rows = Names("attention b=1 h=2 s=2048 d=64", target);
  const std::set<std::string> short_rows = Names("attention b=1 h=2 s=128 d=64", target);
  EXPECT_TRUE(long_rows.contains("chain") && short_rows.contains("chain"));
  EXPECT_GT(long_rows.size(), 1u);
  EXPECT_LT(2 * long_rows.size(), short_rows.size());
  // These weights are much larger than L2, and every block of rows would read all of them again. So
  // whole tensors keep all alternatives.
  const std::set<std::string> layers = Names("mlp m=2048 k=768 h=3072 n=768", target);
  EXPECT_EQ(layers, Names("mlp m=128 k=768 h=3072 n=768", target));
}

TEST(RowChain, AChainNeedsRowsForAllCores) {
  target::Target many = Avx512();
  many.cores = 64;
  EXPECT_EQ(Chain("mlp m=16 k=64 h=128 n=64", many), nullptr);
  EXPECT_NE(Chain("mlp m=1024 k=64 h=128 n=64", many), nullptr);
}

}  // namespace
}  // namespace hone::space
