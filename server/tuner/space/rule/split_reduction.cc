#include <utility>

#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/plain_nest.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {
namespace {

// Up to this many register tiles of results per core, threads may share the reduction instead.
constexpr int64_t kFewTiles = 8;
// With fewer terms per result, parts are not worth a second pass.
constexpr int64_t kLeastSplitTerms = 256;
// Minimum number of terms in a part, so that every micro-kernel's body fits.
constexpr int64_t kLeastSteps = 16;

}  // namespace

// Split-K: if a contraction has few results for the cores and long sums, computes each sum in
// parts (SplitSum). The first nest is a contraction with a batch of parts, tiled like any other;
// the second is a plain nest. Only the order of summation changes, so strict jobs may use it too.
std::vector<Sketch> ApplySplitReduction(const RuleContext& context, const Sketch& sketch,
                                        int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Block& block = found->block();
  const TileLimits& limits = found->limits;
  const std::optional<Contraction> contraction = AnalyzeContraction(found->program, found->id);
  // Only windows over images have guards, and images have enough results.
  if (!contraction.has_value() || !block.guards.empty()) return {};
  const BlockAxes axes = AxesOf(block);
  const int64_t results = PointsOf(block, axes.spatial), terms = PointsOf(block, axes.reduce);
  // If the result is narrower than a vector, its lanes lie along the reduction: see
  // row_fused_reduction.
  if (limits.cores < 2 || block.iters[contraction->vector].extent < limits.lanes ||
      terms < kLeastSplitTerms || results > terms ||
      results > kFewTiles * limits.cores * limits.accumulators * limits.lanes ||
      results * terms <= limits.serial_elements) {
    return {};
  }
  // Every core gets a part, but there are not too many parts to add.
  const std::vector<int64_t> sizes =
      PartSizes(block.iters[contraction->reduce].extent, limits.cores,
                limits.reduction_parts * limits.cores, kLeastSteps);
  if (sizes.empty()) return {};

  SplitSum split = SplitReduction(sketch, nest, block, contraction->reduce, sizes, /*dimension=*/0);
  SchedulePlainNest(split.sketch.trace, split.combining, split.combining_block, limits.lanes,
                    /*sampled=*/false);
  ++split.sketch.minor;
  return {sketch, std::move(split.sketch)};
}

}  // namespace hone::space
