#include <utility>

#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {
namespace {

constexpr int64_t kLeastTerms = 512;  // minimum length of a sum for a second kernel to pay
constexpr int64_t kLeastPart = 64;    // minimum number of terms in a part
constexpr int64_t kMostParts = 256;
constexpr int64_t kFewResults = 1024;  // maximum results of a contraction, per compute unit

}  // namespace

// Split-K for GPUs: long sums with few results are computed in parts (SplitSum), which a second
// kernel adds.
// Other rules schedule the first nest, as a contraction with a batch or as rows.
std::vector<Sketch> ApplyGpuSplitReduction(const RuleContext& context, const Sketch& sketch,
                                           int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Block& block = found->block();
  if (block.reducer == ir::Reducer::kNone || block.outputs.size() != 1 || !block.guards.empty() ||
      block.indices.size() >= ir::kMaxRank) {
    return {};
  }
  const GpuTileLimits limits = GpuTileLimits::Of(*context.target);
  const std::optional<Contraction> contraction = AnalyzeContraction(found->program, found->id);
  const BlockAxes axes = AxesOf(block);
  const int64_t results = PointsOf(block, axes.spatial), terms = PointsOf(block, axes.reduce);
  const bool few =
      contraction.has_value() ? results <= kFewResults * limits.units : results <= limits.units;
  if (!few || terms < kLeastTerms || axes.spatial.empty()) return {};
  const int axis = contraction.has_value() ? contraction->reduce : axes.reduce.back();
  const std::vector<int64_t> sizes = PartSizes(block.iters[axis].extent, 2, kMostParts, kLeastPart);
  if (sizes.empty()) return {};

  // The parts become the first dimension of a contraction's partial results, but the last one of a
  // row reduction's.
  SplitSum split =
      SplitReduction(sketch, nest, block, axis, sizes, contraction.has_value() ? 0 : -1);
  ScheduleGpuNest(split.sketch.trace, split.combining, split.combining_block, limits, {1},
                  /*sampled=*/false);
  if (contraction.has_value()) ++split.sketch.minor;
  return {sketch, std::move(split.sketch)};
}

}  // namespace hone::space
