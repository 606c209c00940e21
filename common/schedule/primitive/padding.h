#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_PADDING_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_PADDING_H_

#include <vector>

#include "absl/status/statusor.h"
#include "common/ir/program.h"

// Domains rounded up. FailedPrecondition: with the program printed and the node marked; the program
// is unchanged.
namespace hone::schedule {

// Rounds each iteration variable of a sum of products up to a multiple of its factor (in the order
// of the block's iteration variables; 1 leaves one alone), so that whatever needs full tiles finds
// them. What the block reads is copied to larger buffers with zeros around (ahead of time where it
// is constant), its loops get longer, and what it writes is copied back without the rest. Returns
// the blocks made: the copies in the order in which the expression reads, then the one that copies
// back, if any. Legal for a sum that has its init, whose value is a product of loads and casts, and
// whose padded variables are each bound to a serial loop of their own without other content, no
// guard depends on them, and loads use them as plain indices. Over a padded reduction variable
// every product must be zero: in float types each load depends on it (0·∞ is none), in others one
// does.
absl::StatusOr<std::vector<ir::NodeId>> PadEinsum(ir::Program& program, ir::NodeId block,
                                                  const std::vector<ir::Extent>& factors);

// Takes the zeros out of a block that PadEinsum made: a new block stores them before `loop`, the
// block itself becomes a plain copy of what is inside. Returns the new block. Legal as
// DecomposeReduction is.
absl::StatusOr<ir::NodeId> DecomposePadding(ir::Program& program, ir::NodeId block,
                                            ir::NodeId loop);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_PADDING_H_
