#include "server/space/rule/rules.h"

namespace hone::space {

// A stage without a reduction whose tensor is no output and is read by others is computed where it
// is read.
std::vector<Sketch> ApplyAutoInline(const RuleContext& context, const Sketch& sketch, int nest) {
  const absl::StatusOr<ir::Program> program = context.ProgramOf(sketch);
  if (!program.ok()) return {};
  const ir::NodeId block = program->FindBlock(sketch.nests[nest].name);
  if (block == ir::kNoNode || sketch.nests[nest].state != Nest::State::kOpen) return {};
  const ir::Block& content = program->BlockOf(block);
  if (content.reducer != ir::Reducer::kNone || program->buffers[content.outputs[0]].output ||
      program->ReadersOf(content.outputs[0]).empty()) {
    return {};
  }
  Sketch inlined = sketch;
  inlined.trace.Add("compute_inline", {inlined.nests[nest].block});
  inlined.nests[nest].state = Nest::State::kDone;
  return {std::move(inlined)};
}

}  // namespace hone::space
