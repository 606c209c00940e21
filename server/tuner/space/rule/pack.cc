#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/tuner/space/block_kind.h"
#include "server/tuner/space/panel_copy.h"
#include "server/tuner/space/rule/rules.h"
#include "server/tuner/space/sketch_editor.h"

namespace hone::space {
namespace {

// A copy of an operand that is not constant pays off only if each element is read at least this
// many times.
constexpr int64_t kLeastReuse = 4;

// Returns the other constants that a block reads along its vectors, such as the scales and zero
// points of blocks of weights.
std::vector<ir::BufferId> OtherConstants(const ir::Program& program, const ir::Block& block,
                                         const Contraction& c) {
  std::vector<ir::BufferId> constants;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const ir::Buffer& buffer = program.buffers[load.buffer];
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    const bool along_vectors = buffer.constant && buffer.input && load.gathered < 0 &&
                               indices.size() > 1 &&
                               indices.back().SingleAtom() == block.iters[c.vector].var;
    if (along_vectors && load.buffer != c.vector_operand.buffer &&
        load.buffer != c.row_operand.buffer && !absl::c_linear_search(constants, load.buffer)) {
      constants.push_back(load.buffer);
    }
  });
  return constants;
}

// Copies a constant into panels as wide as those of the vector operand, so that both are read in
// order.
void CopyIntoPanels(Sketch& sketch, const schedule::Operand& block, const ir::Buffer& buffer,
                    const Tiling& tiling) {
  SketchEditor edit(sketch);
  const schedule::Operand copy =
      edit.Add("cache_read", {block, schedule::Text(buffer.name), schedule::Text("global")})[0];
  std::vector<std::string> from;
  for (size_t d = 0; d < buffer.shape.size(); ++d) from.push_back(absl::StrCat("a", d));
  const std::string size = absl::StrCat("$0*", tiling.lanes);
  std::vector<std::string> to = from;
  to.pop_back();
  to.insert(to.begin(), absl::StrCat(from.back(), " / ", size));
  to.push_back(absl::StrCat(from.back(), " % ", size));
  edit.Add(
      "transform_layout",
      {copy,
       schedule::Text(absl::StrCat(absl::StrJoin(from, ", "), " -> ", absl::StrJoin(to, ", "))),
       tiling.vectors});
}

}  // namespace

std::vector<Sketch> ApplyPack(const RuleContext& context, const Sketch& sketch, int nest) {
  const std::optional<NestBlock> found = FindNestBlock(context, sketch, nest, Nest::State::kTiled);
  if (!found.has_value()) return {};
  const ir::Program& program = found->program;
  const ir::Block& block = found->block();
  const TileLimits& limits = found->limits;
  const Tiling& tiling = *sketch.nests[nest].tiling;
  const schedule::Operand block_register = sketch.nests[nest].block;
  const Contraction& c = tiling.contraction;
  // Whether a copy of an operand pays off. `reads`: how many times each element is read, which is
  // the number of register tiles along the axes of the other operand. This number is estimated for
  // tiles of 8 rows and 2 vectors.
  const auto pays = [&](const ContractionOperand& operand, int64_t reads) {
    if (operand.panel_dimension < 0) return false;
    const ir::Buffer& buffer = program.buffers[operand.buffer];
    return buffer.constant || (program.WritersOf(operand.buffer).empty() && reads >= kLeastReuse);
  };
  const int64_t row_points = block.iters[c.row].extent * PointsOf(block, c.row_like);
  // An operand that is contiguous along the vectors and at most one vector wide is already a panel.
  const bool is_panel = c.vector_contiguous && block.iters[c.vector].extent <= limits.lanes;
  const bool pack_vectors = !is_panel && pays(c.vector_operand, row_points / 8);
  const bool pack_rows = pays(c.row_operand, block.iters[c.vector].extent / (2 * limits.lanes));
  if (!pack_vectors) return {};

  const std::vector<ir::BufferId> others = OtherConstants(program, block, c);

  // Where an operand is packed: before the nest, or in each tile of the reduction.
  enum class Place { kNowhere, kBefore, kAtTile };
  const auto packed = [&](Place rows, Place vectors) {
    Sketch result = sketch;
    std::string name = "pack";
    if (rows != Place::kNowhere) {
      PanelCopy(result, block_register, tiling, program, limits, /*rows=*/true)
          .Run(rows == Place::kAtTile);
      absl::StrAppend(&name, program.buffers[c.row_operand.buffer].name);
    }
    PanelCopy(result, block_register, tiling, program, limits, /*rows=*/false)
        .Run(vectors == Place::kAtTile);
    absl::StrAppend(&name, program.buffers[c.vector_operand.buffer].name);
    for (const ir::BufferId constant : others) {
      CopyIntoPanels(result, block_register, program.buffers[constant], tiling);
    }
    result.name.push_back(std::move(name));
    if (rows == Place::kAtTile || vectors == Place::kAtTile) {
      result.name.push_back(rows == vectors ? "both_at" : "at");
      ++result.minor;
    }
    return result;
  };
  std::vector<Sketch> sketches;
  // A constant that another block computes ahead of time is written directly into panels at no
  // cost, so it is always packed.
  const bool computed = !program.WritersOf(c.vector_operand.buffer).empty();
  // Only packed copies of i4 and u4 have a layout that is unpacked a vector at a time
  // (worker/compile/lower).
  const bool in_bits = ir::IsPacked(program.buffers[c.vector_operand.buffer].dtype);
  // The panels of a constant are filled up to whole vectors. Without them, each load of the last
  // vectors needs a mask if the rows do not fill vectors.
  const bool fills_vectors = block.iters[c.vector].extent % limits.lanes == 0;
  const bool constant = program.buffers[c.vector_operand.buffer].constant;
  if (c.vector_contiguous && !computed && !in_bits && (fills_vectors || !constant))
    sketches.push_back(sketch);
  sketches.push_back(packed(Place::kNowhere, Place::kBefore));
  if (pack_rows) sketches.push_back(packed(Place::kBefore, Place::kBefore));
  if (!tiling.reduce_outer.has_value()) return sketches;
  if (!program.buffers[c.vector_operand.buffer].constant) {
    // Each tile packs its part of the vector operand. The row operand, which every tile reads
    // again, is not packed or is packed once before the nest.
    sketches.push_back(packed(Place::kNowhere, Place::kAtTile));
    if (pack_rows) sketches.push_back(packed(Place::kBefore, Place::kAtTile));
    // If the vector operand is not contiguous along the vectors, each tile may also pack its parts
    // of both operands.
    if (pack_rows && !c.vector_contiguous && !program.buffers[c.row_operand.buffer].constant)
      sketches.push_back(packed(Place::kAtTile, Place::kAtTile));
  } else if (pack_rows && !program.buffers[c.row_operand.buffer].constant) {
    sketches.push_back(packed(Place::kAtTile, Place::kBefore));
  }
  return sketches;
}

}  // namespace hone::space
