#include "server/tuner/space/plain_nest.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {

using schedule::Operand;

// The last rule: parallelizes and vectorizes every nest.
std::vector<Sketch> ApplyParallelVectorizeUnroll(const RuleContext& context, const Sketch& sketch,
                                                 int nest) {
  if (sketch.nests[nest].state == Nest::State::kDone) return {};
  Sketch result = sketch;
  Nest& done = result.nests[nest];
  switch (done.state) {
    case Nest::State::kTiled:
      result.trace.Add("parallel", {done.tiling->outer});
      break;
    case Nest::State::kFused: {
      if (done.lanes == 1) break;
      // Its last loop covers whole vectors of the surrounding tile.
      const std::vector<Operand> loops = result.trace.Add("loops", {done.block}, {}, done.loops);
      const std::vector<Operand> parts =
          result.trace.Add("split", {loops.back(), Literal(0), Literal(done.lanes)}, {}, 2);
      result.trace.Add("vectorize", {parts[1]});
      break;
    }
    case Nest::State::kOpen: {
      const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
      if (!found.has_value()) return {};
      // Constants are computed ahead of time, so their speed does not matter.
      const bool sampled = !found->output().constant;
      SchedulePlainNest(result.trace, done.block, found->block(), found->limits.lanes, sampled,
                        PlanesOf(found->program, found->block()));
      break;
    }
    case Nest::State::kDone:
      break;
  }
  done.state = Nest::State::kDone;
  return {std::move(result)};
}

}  // namespace hone::space
