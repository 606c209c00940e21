#ifndef HONE_SERVER_SPACE_ROW_GROUP_H_
#define HONE_SERVER_SPACE_ROW_GROUP_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::space {

// Stages that reduce rows and use the results along the same rows, as softmax and norms do: the
// last stage with those that only it and its members read. Every member's first `rows` spatial axes
// are the rows; a reduction has no others, its innermost axis is contiguous in what it reads.
struct RowGroup {
  std::vector<ir::NodeId> blocks;  // in the program's order; the last one is the result
  int rows = 1;                    // axes
  // The elements that a row's reductions read, at most.
  int64_t row_points = 1;
};

// The group that ends in `last`, made of blocks of `open`. Nothing when no member reduces, a member
// reduces a tuple, reads elsewhere in the rows than at its own place, or has lanes along a spatial
// axis (window_reduction is for those).
std::optional<RowGroup> FindRowGroup(const ir::Program& program, ir::NodeId last,
                                     absl::Span<const ir::NodeId> open);

// The spatial and the reduction axes of a block, as positions in its iters.
struct BlockAxes {
  std::vector<int> spatial, reduce;
};
BlockAxes AxesOf(const ir::Block& block);

// Whether some load that varies with the block's reduction has consecutive elements along an axis,
// with a coefficient of 1 in its last index.
bool IsContiguousAlong(const ir::Program& program, const ir::Block& block, int axis);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_ROW_GROUP_H_
