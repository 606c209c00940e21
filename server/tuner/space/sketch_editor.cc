#include "server/tuner/space/sketch_editor.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/tuner/space/block_kind.h"

namespace hone::space {
namespace {

using schedule::Operand;

}  // namespace

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

void RowVectors::Columns(const Operand& columns, int64_t extent) {
  if (extent <= limits_.lanes) {
    edit_.Add("vectorize", {columns});
    return;
  }
  const std::vector<Operand> parts = edit_.Split(columns, {Width(extent, columns_)});
  edit_.Add("vectorize", {parts[1]});
}

void RowVectors::Lanes(const Operand& block, const Operand& reduction, int64_t extent, int lane) {
  const std::vector<Operand> parts = edit_.Split(reduction, {LanesOf(extent)});
  edit_.Add("rfactor", {block, parts[1]});
  edit_.Add("vectorize", {parts[1]});
  const std::vector<Operand> combining = edit_.Loops(block, lane + 1);
  edit_.Add("vectorize", {combining.back()});
}

Operand RowVectors::Width(int64_t extent, Widths& widths) {
  for (const auto& [of, width] : widths) {
    if (of == extent) return width;
  }
  const Operand width = edit_.Sample(RowWidths(limits_, extent));
  widths.emplace_back(extent, width);
  return width;
}

std::vector<int64_t> PartSizes(int64_t extent, int64_t least, int64_t most, int64_t least_terms) {
  std::vector<int64_t> sizes;
  for (int64_t parts = least; parts <= most && parts * least_terms <= extent; ++parts) {
    if (extent % parts == 0) sizes.push_back(extent / parts);
  }
  return sizes;
}

SplitSum SplitReduction(const Sketch& sketch, int nest, const ir::Block& block, int axis,
                        std::vector<int64_t> sizes, int dimension) {
  SplitSum split{.sketch = sketch, .combining = sketch.nests[nest].block};
  SketchEditor edit(split.sketch);
  const std::vector<Operand> loops = edit.Loops(split.combining, block.iters.size());
  const std::vector<Operand> cut = edit.Split(loops[axis], {edit.Sample(std::move(sizes))});
  std::vector<Operand> spatial, reductions;
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    (block.iters[i].reduce ? reductions : spatial).push_back(i == axis ? cut[1] : loops[i]);
    if (!block.iters[i].reduce) split.combining_block.iters.push_back(block.iters[i]);
  }
  split.combining_block.iters.push_back(block.iters[axis]);
  // Parts that run outermost get their own nest, whose loop order equals its variable order.
  std::vector<Operand> order = {cut[0]};
  Append(order, spatial);
  Append(order, reductions);
  edit.Add("reorder", order);
  const Operand partial = edit.Add("rfactor", {split.combining, cut[0], Literal(dimension)})[0];
  std::rotate(order.begin(), order.begin() + 1, order.begin() + 1 + spatial.size());
  edit.Add("reorder", order);

  const std::string& name = sketch.nests[nest].name;
  split.sketch.nests.push_back(
      {.name = name, .block = split.combining, .state = Nest::State::kDone});
  split.sketch.nests[nest].name = absl::StrCat(name, "_rf");
  split.sketch.nests[nest].block = partial;
  split.sketch.name.push_back("parts");
  return split;
}

}  // namespace hone::space
