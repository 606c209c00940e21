#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/space/plain_nest.h"
#include "server/space/rule/rules.h"
#include "server/space/sketch_editor.h"

namespace hone::space {
namespace {

using schedule::Operand;

// Up to this many register tiles of results per core, threads may share the reduction instead.
constexpr int64_t kFewTiles = 8;
// With fewer terms per result, parts are not worth a second pass.
constexpr int64_t kLeastSplitTerms = 256;
// Minimum number of terms in a part, so that every micro-kernel's body fits.
constexpr int64_t kLeastSteps = 16;

int64_t PointsOf(const ir::Block& block, bool reduce) {
  int64_t points = 1;
  for (const ir::BlockIter& iter : block.iters) points *= iter.reduce == reduce ? iter.extent : 1;
  return points;
}

// Returns sizes for the parts: divisors of the reduction that give every core a part, and not too
// many parts to add.
std::vector<int64_t> PartSizes(int64_t extent, const TileLimits& limits) {
  std::vector<int64_t> sizes;
  for (int64_t parts = std::max<int64_t>(2, limits.cores);
       parts <= limits.reduction_parts * limits.cores && parts * kLeastSteps <= extent; ++parts) {
    if (extent % parts == 0) sizes.push_back(extent / parts);
  }
  return sizes;
}

}  // namespace

// Split-K: if a contraction has few results for the cores and long sums, computes each sum in
// parts.
//   for i, j, k: C[i, j] += …  →  for i, j, part, k_1: C_rf[part, i, j] += …;
//                                 for i, j, part: C[i, j] += C_rf[part, i, j]
// The first is a contraction with a batch of parts, tiled like any other; the second is a plain
// nest. Only the order of summation changes, so strict jobs may use it too.
std::vector<Sketch> ApplySplitReduction(const RuleContext& context, const Sketch& sketch,
                                        int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Block& block = found->block();
  const TileLimits& limits = found->limits;
  const std::optional<Contraction> contraction = AnalyzeContraction(found->program, found->id);
  // Only windows over images have guards, and images have enough results.
  if (!contraction.has_value() || !block.guards.empty()) return {};
  const int64_t results = PointsOf(block, /*reduce=*/false);
  const int64_t terms = PointsOf(block, /*reduce=*/true);
  // If the result is narrower than a vector, its lanes lie along the reduction: see
  // row_fused_reduction.
  if (limits.cores < 2 || block.iters[contraction->vector].extent < limits.lanes ||
      terms < kLeastSplitTerms || results > terms ||
      results > kFewTiles * limits.cores * limits.accumulators * limits.lanes ||
      results * terms <= limits.serial_elements) {
    return {};
  }
  const std::vector<int64_t> sizes = PartSizes(block.iters[contraction->reduce].extent, limits);
  if (sizes.empty()) return {};

  Sketch split = sketch;
  SketchEditor edit(split);
  const Operand whole = split.nests[nest].block;
  const std::vector<Operand> loops = edit.Loops(whole, block.iters.size());
  const std::vector<Operand> cut = edit.Split(loops[contraction->reduce], {edit.Sample(sizes)});
  std::vector<Operand> spatial, reductions;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    (block.iters[i].reduce ? reductions : spatial)
        .push_back(i == contraction->reduce ? cut[1] : loops[i]);
  }
  // Parts that run outermost get their own nest, whose loop order equals its variable order.
  std::vector<Operand> order = {cut[0]};
  Append(order, spatial);
  Append(order, reductions);
  edit.Add("reorder", order);
  const Operand partial = edit.Add("rfactor", {whole, cut[0], Literal(0)})[0];
  std::rotate(order.begin(), order.begin() + 1, order.begin() + 1 + spatial.size());
  edit.Add("reorder", order);

  // The number of parts is a decision, so nothing may depend on it.
  ir::Block combining;
  for (const ir::BlockIter& iter : block.iters) {
    if (!iter.reduce) combining.iters.push_back(iter);
  }
  combining.iters.push_back(block.iters[contraction->reduce]);
  SchedulePlainNest(split.trace, whole, combining, limits.lanes, /*sampled=*/false);

  split.nests.push_back(
      {.name = sketch.nests[nest].name, .block = whole, .state = Nest::State::kDone});
  split.nests[nest].name = absl::StrCat(sketch.nests[nest].name, "_rf");
  split.nests[nest].block = partial;
  split.name.push_back("parts");
  ++split.minor;
  return {sketch, std::move(split)};
}

}  // namespace hone::space
