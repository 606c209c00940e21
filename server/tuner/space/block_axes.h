#ifndef HONE_SERVER_TUNER_SPACE_BLOCK_AXES_H_
#define HONE_SERVER_TUNER_SPACE_BLOCK_AXES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::space {

// The spatial and the reduction axes of a block, as positions in its iters.
struct BlockAxes {
  std::vector<int> spatial, reduce;
};
BlockAxes AxesOf(const ir::Block& block);

// Returns the number of iterations of these axes together.
int64_t PointsOf(const ir::Block& block, absl::Span<const int> axes);

// Returns the axis that an index equals; -1 if it is another expression.
int AxisOf(const ir::Block& block, const ir::Index& index);

// Whether an index varies with a reduction of the block.
bool VariesWithReduction(const ir::Program& program, const ir::Block& block,
                         const ir::Index& index);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_BLOCK_AXES_H_
