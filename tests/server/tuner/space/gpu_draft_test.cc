// The draft for GPUs proposes the schedules that experts write.

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/tuner/feature/gpu_terms.h"
#include "server/tuner/search/search_strategy.h"
#include "server/tuner/space/generate.h"
#include "tests/server/tuner/space/gpu_program.h"
#include "tests/server/tuner/space/workloads.h"
#include "tests/status.h"

namespace hone::space {
namespace {

// How a contraction is tiled: of a block, of a thread, and of a step in shared memory.
struct MatmulTile {
  int64_t rows = 1, columns = 1, steps = 1;
  int64_t thread_rows = 1, thread_columns = 1;
  int64_t threads = 1;
  bool staged = false;  // both operands are read from shared memory
};

MatmulTile TileOf(const ir::Program& program) {
  const ir::NodeId id = program.FindBlock("C");
  const ir::Block& block = program.BlockOf(id);
  MatmulTile tile;
  bool inside = false;
  for (const ir::NodeId loop : program.LoopsAbove(id)) {
    const ir::Node& node = program.node(loop);
    const bool bound = node.loop == ir::LoopKind::kBound;
    const bool grid = bound && node.axis <= ir::ThreadAxis::kBlockZ;
    const bool thread = bound && !grid;
    const auto moves = [&](int iter) {
      return program.atoms.DependsOn(block.iters[iter].binding, node.var);
    };
    const int64_t extent = node.extent.value;
    inside |= thread;
    if (grid) continue;
    if (thread) tile.threads *= extent;
    for (int axis : {0, 1}) {
      if (!moves(axis)) continue;
      (axis == 0 ? tile.rows : tile.columns) *= extent;
      if (!thread) (axis == 0 ? tile.thread_rows : tile.thread_columns) *= extent;
    }
    if (moves(2) && inside) tile.steps *= extent;
  }
  int shared = 0;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    shared += program.buffers[load.buffer].scope == ir::Scope::kShared;
  });
  tile.staged = shared == 2;
  return tile;
}

std::string ToText(const MatmulTile& tile, const feature::GpuEstimate& estimate) {
  const feature::GpuTerms& t = estimate.launches[0];
  return absl::StrCat(tile.rows, "x", tile.columns, "x", tile.steps, " by ", tile.thread_rows, "x",
                      tile.thread_columns, ", ", tile.threads, " threads",
                      tile.staged ? ", staged" : "", "; cycles ", estimate.cycles, ": compute ",
                      t.compute_cycles, " shared ", t.shared_cycles, " l1 ", t.l1_cycles, " l2 ",
                      t.l2_cycles, " latency ", t.latency_cycles, " memory ", t.memory_cycles,
                      " registers ", t.registers, " resident ", t.resident, " waves ", t.waves,
                      " conflicts ", t.conflicts, " coalesced ", t.coalesced);
}

struct Drafted {
  MatmulTile tile;
  feature::GpuEstimate estimate;
};

// The first candidates that a search of a matmul proposes.
std::vector<Drafted> FirstCandidates(const char* text, const target::Target& target, int count,
                                     uint64_t seed) {
  auto spaces = GenerateDesignSpaces(MakeWorkload(text), target).value();
  search::SearchContext context{.target = target, .seed = seed, .threads = 1};
  for (const auto& space : spaces) context.spaces.push_back(space.get());
  auto strategy = search::CreateSearchStrategy("portfolio", context).value();
  std::vector<Drafted> drafted;
  const std::vector<record::Candidate> proposed = strategy->Propose(count, 0, nullptr).value();
  for (const record::Candidate& candidate : proposed) {
    for (const auto& space : spaces) {
      if (space->digest() != candidate.space_digest) continue;
      const ir::Program program = space->Replay(candidate.decisions).value();
      feature::Nest nest;
      EXPECT_THAT(nest.Analyze(program), IsOk());
      drafted.push_back(
          {.tile = TileOf(program),
           .estimate = feature::EstimateGpuCost(nest, feature::GpuMachine::Of(target))});
    }
  }
  return drafted;
}

TEST(GpuDraft, ProposesTheTilesOfAnExpertForAMatmul) {
  for (const uint64_t seed : {1, 2, 3, 4, 5, 6}) {
    bool found = false;
    std::string all;
    const std::vector<Drafted> first =
        FirstCandidates("matmul m=1024 n=1024 k=1024", Sm80(), 16, seed);
    for (const Drafted& drafted : first) {
      const MatmulTile& tile = drafted.tile;
      absl::StrAppend(&all, ToText(tile, drafted.estimate), "\n");
      const feature::GpuTerms& terms = drafted.estimate.launches[0];
      found |= tile.rows == 128 && tile.columns == 128 && tile.steps >= 8 && tile.steps <= 32 &&
               tile.thread_rows == 8 && tile.thread_columns == 8 && tile.staged &&
               terms.coalesced > 0.9 && terms.conflicts < 1.3;
    }
    EXPECT_EQ(first.size(), 16u);
    EXPECT_TRUE(found) << all;
  }
}

// A compiler would spill what exceeds a thread's share of them.
TEST(GpuDraft, BlocksFitTheRegistersOfAUnit) {
  const target::Target target = Sm80();
  const auto spaces = GenerateDesignSpaces(MakeWorkload("matmul m=4096 n=4096 k=4096"), target);
  for (const auto& space : spaces.value()) {
    for (uint64_t i = 0; i < 300; ++i) {
      Rng rng(3, i);
      const ir::Program program = space->Replay(space->Sample(rng).value()).value();
      feature::Nest nest;
      ASSERT_THAT(nest.Analyze(program), IsOk());
      const feature::GpuTerms terms =
          feature::EstimateGpuCost(nest, feature::GpuMachine::Of(target)).launches[0];
      ASSERT_LE(terms.threads * terms.registers, 1.1 * target.gpu.unit_registers)
          << space->name() << program.ToText();
    }
  }
}

}  // namespace
}  // namespace hone::space
