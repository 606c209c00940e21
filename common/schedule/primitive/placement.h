#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_PLACEMENT_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_PLACEMENT_H_

#include "absl/status/statusor.h"
#include "common/ir/program.h"

// Where a block is computed. Errors: FailedPrecondition, with the program printed and the node marked; the program is
// unchanged.
namespace hone::schedule {

// Moves a block under a loop, before the first block there that reads it, and makes it compute just what one iteration of
// the loop needs. Its former loops are gone; the new ones run over the needed region, then over its reductions.
// Legal when every reader is under the loop, the block is not, and it writes its one buffer at its own iteration variables.
absl::Status ComputeAt(ir::Program& program, ir::NodeId block, ir::NodeId loop);

// Moves a block under a loop, after the last block there that writes what it reads, and makes it consume just what one
// iteration of the loop produces.
// Legal when all it reads of computed buffers is written under the loop, complete there (no loop around reduces), at places
// that differ between iterations, and is read at its own iteration variables.
absl::Status ReverseComputeAt(ir::Program& program, ir::NodeId block, ir::NodeId loop);

// Replaces every read of the block's buffer by its expression, and removes the block.
// Legal when the block does not reduce, writes at its own iteration variables, and its buffer is no output.
absl::Status ComputeInline(ir::Program& program, ir::NodeId block);

// Gives the block of a reduction its own block that stores the neutral element, before `loop`. Returns the new block.
// Legal when the loop is above the block, no loop above it reduces, the loops under it compute every element once, and the
// block still has its init.
absl::StatusOr<ir::NodeId> DecomposeReduction(ir::Program& program, ir::NodeId block, ir::NodeId loop);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_PLACEMENT_H_
