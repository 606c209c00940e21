#include "server/tuner/space/sketch_editor.h"

#include <utility>

#include "server/tuner/space/elementwise.h"

namespace hone::space {

std::optional<NestBlock> FindNestBlock(const RuleContext& context, const Sketch& sketch, int nest,
                                       Nest::State state) {
  if (sketch.nests[nest].state != state) return std::nullopt;
  absl::StatusOr<std::shared_ptr<const ir::Program>> program = context.ProgramOf(sketch);
  if (!program.ok()) return std::nullopt;
  NestBlock found{.kept = *std::move(program)};
  found.id = found.program.FindBlock(sketch.nests[nest].name);
  if (found.id == ir::kNoNode) return std::nullopt;
  found.limits = TileLimits::Of(*context.target, found.output().dtype);
  return found;
}

std::vector<ir::NodeId> OpenBlocks(const Sketch& sketch, const ir::Program& program) {
  std::vector<ir::NodeId> open;
  for (const Nest& nest : sketch.nests) {
    const ir::NodeId block = program.FindBlock(nest.name);
    if (nest.state == Nest::State::kOpen && block != ir::kNoNode) open.push_back(block);
  }
  return open;
}

int ElementwiseConsumer(const Sketch& sketch, const ir::Program& program, ir::NodeId block) {
  const ir::BufferId result = program.BlockOf(block).outputs[0];
  if (program.buffers[result].output) return -1;
  const std::vector<ir::NodeId> readers = program.ReadersOf(result);
  if (readers.size() != 1 || ElementwiseProducer(program, readers[0]) != block) return -1;
  for (int n = 0; n < static_cast<int>(sketch.nests.size()); ++n) {
    if (sketch.nests[n].state == Nest::State::kOpen &&
        sketch.nests[n].name == program.BlockOf(readers[0]).name)
      return n;
  }
  return -1;
}

int CopyNestOf(const Sketch& sketch, const ir::Program& program, ir::BufferId buffer,
               ir::NodeId reader) {
  const std::vector<ir::NodeId> writers = program.WritersOf(buffer);
  if (writers.size() != 1 || program.buffers[buffer].output || program.buffers[buffer].constant ||
      program.ReadersOf(buffer) != std::vector<ir::NodeId>{reader} ||
      !CopiesElements(program, program.BlockOf(writers[0]))) {
    return -1;
  }
  for (int n = 0; n < static_cast<int>(sketch.nests.size()); ++n) {
    if (sketch.nests[n].state == Nest::State::kOpen &&
        sketch.nests[n].name == program.BlockOf(writers[0]).name)
      return n;
  }
  return -1;
}

bool ReadsCopyNest(const Sketch& sketch, const ir::Program& program, ir::NodeId block) {
  bool reads = false;
  program.pool.VisitLoads(program.BlockOf(block).values[0], [&](const ir::Expr& load) {
    reads |= CopyNestOf(sketch, program, load.buffer, block) >= 0;
  });
  return reads;
}

SketchEditor::Operands SketchEditor::Add(absl::string_view primitive, Operands operands,
                                         std::vector<schedule::Attribute> attributes, int results) {
  return trace_.Add(primitive, std::move(operands), std::move(attributes), results);
}

SketchEditor::Operands SketchEditor::Loops(const Operand& block, size_t count) {
  return Add("loops", {block}, {}, static_cast<int>(count));
}

schedule::Operand SketchEditor::Sample(std::vector<int64_t> candidates) {
  return Add("sample_categorical", {}, {{"candidates", std::move(candidates)}})[0];
}

SketchEditor::Operands SketchEditor::Split(const Operand& loop, const Operands& inner) {
  Operands operands = {loop, Literal(0)};
  Append(operands, inner);
  return Add("split", std::move(operands), {}, 1 + static_cast<int>(inner.size()));
}

SketchEditor::Tiles SketchEditor::SplitInTwo(absl::string_view sampling, const Operand& loop) {
  const Operands sizes = Add(sampling, {loop}, {{"parts", {2}}});
  const Operands parts = Add("split", {loop, sizes[0], sizes[1]}, {}, 2);
  return {parts[0], parts[1], sizes[0]};
}

schedule::Operand SketchEditor::Fuse(const Operands& loops) {
  return loops.size() > 1 ? Add("fuse", loops)[0] : loops[0];
}

}  // namespace hone::space
