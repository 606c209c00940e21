#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_PADDING_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_PADDING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Primitives that round domains up. FailedPrecondition: illegal; the message prints the program
// with the node marked, and the program is unchanged.

// Rounds each iteration variable of a sum of products up to a multiple of its factor (in the
// block's order; 1 leaves a variable unchanged), so that primitives that need full tiles apply. The
// inputs are copied to larger buffers padded with zeros (ahead of time if constant), the loops get
// longer, and the inside of the result is copied back. Returns the new blocks: the copies in the
// order in which the expression reads, then the one that copies back, if any.
//
// Legal for a sum with its init whose value is a product of loads and casts. Each padded variable
// must be bound to a separate serial loop without other content, no guard may depend on it, and
// loads must use it as a plain index. Over a padded reduction variable every product must be zero:
// for floats every load must depend on it (because 0·∞ is NaN), for other types at least one.
absl::StatusOr<std::vector<ir::NodeId>> PadEinsum(ir::Program& program, ir::NodeId block,
                                                  absl::Span<const ir::Extent> factors);

// Separates the zeros from a block that PadEinsum created: a new block stores them before `loop`,
// and the block becomes a plain copy of the inside. Returns the new block. Legal as
// DecomposeReduction is.
absl::StatusOr<ir::NodeId> DecomposePadding(ir::Program& program, ir::NodeId block,
                                            ir::NodeId loop);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_PADDING_H_
