#include "server/tuner/space/gpu/gpu_editor.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

// The last rule for GPUs: divides the results of every nest that no other rule has scheduled among
// blocks and threads.
std::vector<Sketch> ApplyGpuAutoBind(const RuleContext& context, const Sketch& sketch, int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const GpuTileLimits limits = GpuTileLimits::Of(*context.target);
  const ir::Block& block = found->block();
  Sketch bound = sketch;
  // Constants are computed ahead of time, so their speed does not matter.
  ScheduleGpuNest(bound.trace, bound.nests[nest].block, block, limits,
                  NestWidths(found->program, block, limits),
                  /*sampled=*/!found->output().constant);
  bound.nests[nest].state = Nest::State::kDone;
  return {std::move(bound)};
}

}  // namespace hone::space
