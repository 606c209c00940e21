#include "server/tuner/space/gpu/shared_stage.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/tuner/space/block_axes.h"
#include "server/tuner/space/gpu/dot_instruction.h"

namespace hone::space {
namespace {

constexpr int64_t kAlignment = 16;  // of a buffer in shared memory
constexpr int64_t kMostVector = 4;  // elements per access

// Rounds the extents of a copy up, because the last pass of the threads may exceed the copy along
// its outermost dimension.
void RoundUp(int64_t elements_per_pass, absl::InlinedVector<int64_t, 6>& extents) {
  size_t outer = 0;
  while (outer + 1 < extents.size() && extents[outer] == 1) ++outer;
  int64_t inner = 1;
  for (size_t d = outer + 1; d < extents.size(); ++d) inner *= extents[d];
  const int64_t passes = ir::CeilDivInt(extents[outer] * inner, elements_per_pass);
  extents[outer] = ir::CeilDivInt(passes * elements_per_pass, inner);
}

}  // namespace

void SharedStage::SetTiles(const ir::Program& program, const ir::Block& reader,
                           absl::Span<const TileSize> tiles) {
  program.pool.VisitLoads(reader.values[0], [&](const ir::Expr& load) {
    if (load.buffer == buffer) box = *TileBoxOf(program, reader, load, tiles);
  });
}

int64_t SharedStage::Bytes(int64_t threads, absl::Span<const int64_t> decided) const {
  absl::InlinedVector<int64_t, 6> extents = box.Extents(decided);
  RoundUp(threads * kMostVector, extents);
  if (terms > 1) extents[term_dimension] = ir::CeilDivInt(extents[term_dimension], terms);
  int64_t elements = terms;
  for (const int dimension : order) elements *= extents[dimension];
  if (padded && order.size() > 1) {
    const int64_t row = extents[order.back()];
    elements = elements / row * (ir::CeilDivInt(row, kPadding) * kPadding + kPadding / 2);
  }
  return elements * box.element_bytes + kAlignment;
}

void SharedStage::GroupTerms(const ir::Program& program, const ir::Block& reader, ir::AtomId var,
                             int64_t count) {
  terms = count;
  program.pool.VisitLoads(reader.values[0], [&](const ir::Expr& load) {
    if (load.buffer != buffer) return;
    term_dimension = DimensionOf(program.atoms, program.pool.IndicesOf(load), var);
  });
}

std::string SharedStage::Layout() const {
  if (terms == 1 && std::is_sorted(order.begin(), order.end())) return "";
  std::vector<std::string> from, to;
  for (size_t d = 0; d < order.size(); ++d) {
    from.push_back(absl::StrCat("d", d));
    to.push_back(absl::StrCat("d", order[d]));
    if (order[d] == term_dimension) absl::StrAppend(&to.back(), " / ", terms);
  }
  if (terms > 1) to.push_back(absl::StrCat("d", term_dimension, " % ", terms));
  return absl::StrCat(absl::StrJoin(from, ", "), " -> ", absl::StrJoin(to, ", "));
}

std::optional<std::vector<SharedStage>> FindSharedStages(const ir::Program& program,
                                                         const ir::Block& block,
                                                         const Contraction& contraction,
                                                         const GpuTileLimits& limits) {
  std::vector<SharedStage> stages;
  const std::vector<TileSize> no_tiles(block.iters.size());
  bool fits = true;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    if (std::none_of(indices.begin(), indices.end(), [&](const ir::Index& index) {
          return VariesWithReduction(program, block, index);
        }))
      return;
    fits &= std::none_of(stages.begin(), stages.end(),
                         [&](const SharedStage& stage) { return stage.buffer == load.buffer; });
    const ir::Buffer& buffer = program.buffers[load.buffer];
    std::optional<TileBox> box = TileBoxOf(program, block, load, no_tiles);
    fits &= box.has_value() && !buffer.padded;
    if (!fits) return;
    SharedStage stage{.buffer = load.buffer, .box = *std::move(box)};
    for (int d = 0; d < static_cast<int>(buffer.shape.size()); ++d) stage.order.push_back(d);
    // The axis that is divided among threads comes last, so that their loads from shared memory are
    // contiguous.
    for (const ContractionOperand* operand :
         {&contraction.row_operand, &contraction.vector_operand}) {
      if (operand->buffer != load.buffer || operand->panel_dimension < 0) continue;
      stage.order.erase(stage.order.begin() + operand->panel_dimension);
      stage.order.push_back(operand->panel_dimension);
    }
    const bool aligned = program.pool.IndicesOf(load).back().SingleAtom() != ir::kNoAtom;
    stage.widths =
        aligned ? VectorWidths(limits, buffer.shape.back(), buffer.dtype) : std::vector<int64_t>{1};
    stages.push_back(std::move(stage));
  });
  if (!fits || stages.empty()) return std::nullopt;
  return stages;
}

}  // namespace hone::space
