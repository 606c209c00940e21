#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/space/contraction.h"
#include "server/space/gpu/gpu_nest.h"
#include "server/space/row_group.h"
#include "server/space/rule/rules.h"
#include "server/space/sketch_editor.h"

namespace hone::space {
namespace {

using schedule::Operand;

constexpr int64_t kLeastTerms = 512;  // minimum length of a sum for a second kernel to pay
constexpr int64_t kLeastPart = 64;    // minimum number of terms in a part
constexpr int64_t kMostParts = 256;
constexpr int64_t kFewResults = 1024;  // maximum results of a contraction, per compute unit

int64_t PointsOf(const ir::Block& block, bool reduce) {
  int64_t points = 1;
  for (const ir::BlockIter& iter : block.iters) points *= iter.reduce == reduce ? iter.extent : 1;
  return points;
}

// Returns the sizes of parts that divide the reduction.
std::vector<int64_t> PartSizes(int64_t extent) {
  std::vector<int64_t> sizes;
  for (int64_t parts = 2; parts <= kMostParts && parts * kLeastPart <= extent; ++parts) {
    if (extent % parts == 0) sizes.push_back(extent / parts);
  }
  return sizes;
}

}  // namespace

// Split-K for GPUs: long sums with few results are computed in parts, which a second kernel adds.
//   for i, j, k: C[i, j] += …  →  for part, i, j, k_1: C_rf[part, i, j] += …;
//                                 for i, j, part: C[i, j] += C_rf[part, i, j]
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
  const int64_t results = PointsOf(block, /*reduce=*/false);
  const int64_t terms = PointsOf(block, /*reduce=*/true);
  const bool few =
      contraction.has_value() ? results <= kFewResults * limits.units : results <= limits.units;
  if (!few || terms < kLeastTerms || axes.spatial.empty()) return {};
  const int axis = contraction.has_value() ? contraction->reduce : axes.reduce.back();
  const std::vector<int64_t> sizes = PartSizes(block.iters[axis].extent);
  if (sizes.empty()) return {};

  Sketch split = sketch;
  SketchEditor edit(split);
  const Operand whole = split.nests[nest].block;
  const std::vector<Operand> loops = edit.Loops(whole, block.iters.size());
  const std::vector<Operand> cut = edit.Split(loops[axis], {edit.Sample(sizes)});
  std::vector<Operand> spatial, reductions;
  ir::Block combining;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    (block.iters[i].reduce ? reductions : spatial).push_back(i == axis ? cut[1] : loops[i]);
    if (!block.iters[i].reduce) combining.iters.push_back(block.iters[i]);
  }
  combining.iters.push_back(block.iters[axis]);
  // Parts that run outermost get their own nest, whose loop order equals its variable order.
  std::vector<Operand> order = {cut[0]};
  Append(order, spatial);
  Append(order, reductions);
  edit.Add("reorder", order);
  // The parts become the first dimension of a contraction's partial results, but the last one of a
  // row reduction's.
  const Operand partial =
      edit.Add("rfactor", {whole, cut[0], Literal(contraction.has_value() ? 0 : -1)})[0];
  std::rotate(order.begin(), order.begin() + 1, order.begin() + 1 + spatial.size());
  edit.Add("reorder", order);
  // The number of parts is a decision, so the second nest has no decisions that depend on it.
  ScheduleGpuNest(split.trace, whole, combining, limits, {1}, /*sampled=*/false);

  split.nests.push_back(
      {.name = sketch.nests[nest].name, .block = whole, .state = Nest::State::kDone});
  split.nests[nest].name = absl::StrCat(sketch.nests[nest].name, "_rf");
  split.nests[nest].block = partial;
  split.name.push_back("parts");
  if (contraction.has_value()) ++split.minor;
  return {sketch, std::move(split)};
}

}  // namespace hone::space
