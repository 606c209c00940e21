#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {
namespace {

std::string WriterOf(const ir::Program& program, ir::BufferId buffer) {
  return program.BlockOf(program.WritersOf(buffer)[0]).name;
}

}  // namespace

// Accumulates a sum of short floats in an f32 buffer (common/schedule/primitive/data.cc),
// which an element-wise block rounds into the output. Lowering refuses to store partial sums in a
// short format, so the reduction could not be tiled otherwise.
std::vector<Sketch> ApplyWideAccumulator(const RuleContext& context, const Sketch& sketch,
                                         int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Block& block = found->block();
  const ir::BufferId output = block.outputs[0];
  const ir::DType dtype = found->output().dtype;
  if (ir::AccumulatorOf(block.reducer, dtype) == dtype) return {};

  Sketch widened = sketch;
  const schedule::Operand copy =
      widened.trace.Add("cache_write", {sketch.nests[nest].block, schedule::Text("global")})[0];
  const absl::StatusOr<std::shared_ptr<const ir::Program>> after = context.ProgramOf(widened);
  if (!after.ok()) return {};
  widened.nests.push_back({.name = WriterOf(**after, output), .block = copy});
  return {std::move(widened)};
}

}  // namespace hone::space
