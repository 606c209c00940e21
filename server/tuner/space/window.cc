#include "server/tuner/space/window.h"

#include <algorithm>

#include "server/tuner/space/block_axes.h"

namespace hone::space {

std::optional<Window> AnalyzeWindow(const ir::Program& program, const ir::Block& block) {
  if (block.reducer == ir::Reducer::kNone || block.outputs.size() != 1 || block.indices.empty())
    return std::nullopt;
  const BlockAxes axes = AxesOf(block);
  Window window{.vector = AxisOf(block, block.indices.back()), .taps = axes.reduce};
  if (window.vector < 0 || axes.spatial.size() != block.indices.size()) return std::nullopt;
  const ir::AtomId vector = block.iters[window.vector].var;
  bool contiguous = false, broadcast = false;
  program.pool.VisitLoads(block.values[0], [&](const ir::Expr& load) {
    const ir::IndexList& indices = program.pool.IndicesOf(load);
    const bool reduces = std::any_of(indices.begin(), indices.end(), [&](const ir::Index& index) {
      return VariesWithReduction(program, block, index);
    });
    if (!reduces) return;
    const bool along = !indices.empty() && indices.back().SingleAtom() == vector;
    contiguous |= along;
    broadcast |= !along;
  });
  if (!contiguous || broadcast) return std::nullopt;
  for (auto axis = axes.spatial.rbegin(); axis != axes.spatial.rend(); ++axis) {
    if (*axis == window.vector) continue;
    const bool tiled = block.iters[*axis].extent > 1;
    if (tiled && window.width < 0) {
      window.width = *axis;
    } else if (tiled && window.height < 0) {
      window.height = *axis;
    } else {
      window.outer.insert(window.outer.begin(), *axis);
    }
  }
  return window;
}

}  // namespace hone::space
