#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {
namespace {

// Returns the axis along which the vectors would be better than along the last dimension of the
// output: that of constant weights, which can be packed into panels without cost. -1: none.
int BetterVectorAxis(const ir::Program& program, const ir::Block& block, const Contraction& c,
                     int64_t lanes) {
  const auto extent = [&](int axis) { return block.iters[axis].extent; };
  const bool weights = c.row_operand.panel_dimension >= 0 &&
                       program.buffers[c.row_operand.buffer].constant &&
                       !program.buffers[c.vector_operand.buffer].constant;
  if (!weights || extent(c.row) < lanes) return -1;
  const bool slides = absl::c_any_of(c.windows, [&](int axis) { return extent(axis) > 1; });
  const bool fills_vectors = extent(c.vector) % lanes == 0;
  return slides || !fills_vectors ? c.row : -1;
}

}  // namespace

// Computes an image with channels first in a buffer with channels last, so that the vectors run
// along the channels: they are full, and the pixels of a window are broadcast instead of loaded as
// unaligned vectors. The consumer, or a copy, transposes each tile of the results.
std::vector<Sketch> ApplyTransposeOutput(const RuleContext& context, const Sketch& sketch,
                                         int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const ir::Block& block = found->block();
  const std::optional<Contraction> c = AnalyzeContraction(program, found->id);
  if (!c.has_value()) return {};
  const int axis = BetterVectorAxis(program, block, *c, found->limits.lanes);
  if (axis < 0) return {};
  const int last = DimensionOf(program.atoms, block.indices, block.iters[axis].var);
  if (last < 0) return {};

  Sketch transposed = sketch;
  if (found->output().output) {
    const schedule::Operand copy = transposed.trace.Add(
        "cache_write", {sketch.nests[nest].block, schedule::Text("global")})[0];
    const absl::StatusOr<std::shared_ptr<const ir::Program>> after = context.ProgramOf(transposed);
    if (!after.ok()) return {};
    const ir::NodeId writer = (*after)->WritersOf(block.outputs[0])[0];
    transposed.nests.push_back({.name = (*after)->BlockOf(writer).name, .block = copy});
  } else if (program.ReadersOf(block.outputs[0]).size() != 1) {
    return {};
  }
  std::string from, to;
  for (int d = 0; d < static_cast<int>(block.indices.size()); ++d) {
    absl::StrAppend(&from, d > 0 ? ", " : "", "i", d);
    if (d != last) absl::StrAppend(&to, "i", d, ", ");
  }
  transposed.trace.Add(
      "transform_layout",
      {sketch.nests[nest].block, schedule::Text(absl::StrCat(from, " -> ", to, "i", last))});
  transposed.name.push_back("transposed");
  return {sketch, std::move(transposed)};
}

}  // namespace hone::space
