#ifndef HONE_SERVER_TUNER_SPACE_ROW_GROUP_H_
#define HONE_SERVER_TUNER_SPACE_ROW_GROUP_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::space {

// Stages that reduce rows and use the results along the same rows, as softmax and norms do: the
// last stage and the stages that only it and other members read. Every member's first `rows`
// spatial axes are the rows. A reduction has no other spatial axes, and its innermost axis is
// contiguous in what it reads.
struct RowGroup {
  std::vector<ir::NodeId> blocks;  // in program order; the last one is the result
  int rows = 1;                    // number of row axes
  // The maximum number of elements that a row's reductions read.
  int64_t row_points = 1;
};

// Finds the group that ends in `last`, using only blocks of `open`. Returns nullopt if no member
// reduces, a member other than the last one reduces a tuple, a member reads another member at other
// rows than its own, or the lanes lie along a spatial axis (see window_reduction).
std::optional<RowGroup> FindRowGroup(const ir::Program& program, ir::NodeId last,
                                     absl::Span<const ir::NodeId> open);

// Returns `last` and the blocks of `open` that only members read, in program order. The first
// `rows` spatial axes are the rows: every member except `last` writes at its own rows, and its
// readers read it at their own rows.
std::vector<ir::NodeId> RowMembers(const ir::Program& program, ir::NodeId last,
                                   absl::Span<const ir::NodeId> open, int rows);

// Whether a block indexes its output, and the buffers of `computed` that it reads, by its own first
// `rows` spatial axes.
bool KeepsToRows(const ir::Program& program, const ir::Block& block, int rows,
                 absl::Span<const ir::BufferId> computed);

// Whether a block reduces every row to one element whose lanes can be combined: no guards, and the
// innermost axis is contiguous in what it reads, but no spatial axis is.
bool ReducesRows(const ir::Program& program, const ir::Block& block);

// Whether some load that varies with the block's reduction has consecutive elements along an axis,
// i.e. a coefficient of 1 in its last index. Computed indices and the loads that compute them do
// not count.
bool IsContiguousAlong(const ir::Program& program, const ir::Block& block, int axis);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_ROW_GROUP_H_
