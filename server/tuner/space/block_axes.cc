#include "server/tuner/space/block_axes.h"

#include <algorithm>

namespace hone::space {

BlockAxes AxesOf(const ir::Block& block) {
  BlockAxes axes;
  for (size_t i = 0; i < block.iters.size(); ++i) {
    (block.iters[i].reduce ? axes.reduce : axes.spatial).push_back(static_cast<int>(i));
  }
  return axes;
}

int64_t PointsOf(const ir::Block& block, absl::Span<const int> axes) {
  int64_t points = 1;
  for (const int axis : axes) points *= block.iters[axis].extent;
  return points;
}

int AxisOf(const ir::Block& block, const ir::Index& index) {
  for (int i = 0; i < static_cast<int>(block.iters.size()); ++i) {
    if (index.SingleAtom() == block.iters[i].var) return i;
  }
  return -1;
}

bool VariesWithReduction(const ir::Program& program, const ir::Block& block,
                         const ir::Index& index) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const ir::BlockIter& iter) {
    return iter.reduce && program.atoms.DependsOn(index, iter.var);
  });
}

}  // namespace hone::space
