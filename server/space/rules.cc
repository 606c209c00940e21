#include "server/space/rule/rules.h"

#include "common/schedule/replay.h"
#include "server/space/rule.h"

namespace hone::space {
namespace {

constexpr Rule kRules[] = {
    {"auto_inline", ApplyAutoInline, "element-wise producers are computed where they are read"},
    {"window_reduction", ApplyWindowReduction,
     "sums and maxima over windows: tiles of outputs in registers, the window unrolled"},
    {"multi_level_tiling", ApplyMultiLevelTiling,
     "contractions: register tile, then tiles of loops in the order S S R S S R"},
    {"cache_write", ApplyCacheWrite,
     "a tiled block adds up in a buffer of its own, copied to its place at the tile"},
    {"fuse_consumer", ApplyFuseConsumer,
     "an element-wise consumer of a tiled block runs at the tile"},
    {"pack", ApplyPack, "operands of contractions are copied into panels"},
    {"row_fused_reduction", ApplyRowFusedReduction,
     "reductions along rows with their neighbours, a block of rows at a time; few rows in parts"},
    {"parallel_vectorize_unroll", ApplyParallelVectorizeUnroll,
     "outer loops run on threads; what is not tiled is vectorized along its last loop"},
};

}  // namespace

absl::Span<const Rule> Rules() { return kRules; }

absl::StatusOr<ir::Program> RuleContext::ProgramOf(const Sketch& sketch) const {
  schedule::TraceBuilder copy = sketch.trace;
  const schedule::Trace trace = std::move(copy).Build();
  // A draw may be refused where sizes collide; other draws show the same blocks.
  absl::Status last;
  for (uint64_t attempt = 0; attempt < 32; ++attempt) {
    Rng rng(0x736b65746368, attempt);
    schedule::RandomDecider decider(rng);
    absl::StatusOr<schedule::Replayed> replayed = schedule::ReplayWith(workload, trace, decider);
    if (replayed.ok()) return std::move(replayed->program);
    last = replayed.status();
  }
  return last;
}

}  // namespace hone::space
