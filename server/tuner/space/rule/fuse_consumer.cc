#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

namespace {

// Whether the consumer's last axis is the last dimension of what it reads. Otherwise it transposes
// a tile that may be narrower than a vector.
bool ReadsAlongVectors(const ir::Program& program, const ir::Block& consumer) {
  bool along = true;
  program.pool.VisitLoads(consumer.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    if (program.WritersOf(load.buffer).empty()) return;
    along &= indices.back().SingleAtom() == consumer.iters.back().var;
  });
  return along;
}

}  // namespace

// Computes the element-wise consumer of a tiled block at the tile: while the results are in a cache
// if the reduction is tiled, otherwise right after each register tile.
std::vector<Sketch> ApplyFuseConsumer(const RuleContext& context, const Sketch& sketch, int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const ir::NodeId producer = ElementwiseProducer(program, found->id, /*transposes=*/true);
  if (producer == ir::kNoNode) return {};
  for (const Nest& other : sketch.nests) {
    if (other.state != Nest::State::kTiled || other.name != program.BlockOf(producer).name)
      continue;
    const Tiling& tiling = *other.tiling;
    const bool at_outer = tiling.reduce_outer.has_value();
    Sketch fused = sketch;
    Nest& consumer = fused.nests[nest];
    fused.trace.Add("reverse_compute_at", {consumer.block, at_outer ? tiling.outer : tiling.inner});
    consumer.state = Nest::State::kFused;
    consumer.loops =
        (at_outer ? 1 : tiling.loops_to_inner) + static_cast<int>(found->block().iters.size());
    consumer.lanes = ReadsAlongVectors(program, found->block()) ? tiling.lanes : 1;
    return {std::move(fused)};
  }
  return {};
}

}  // namespace hone::space
