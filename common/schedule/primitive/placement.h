#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_PLACEMENT_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_PLACEMENT_H_

#include "absl/status/statusor.h"
#include "common/ir/program.h"

// Primitives that choose where a block is computed. FailedPrecondition: illegal; the message prints
// the program with the node marked, and the program is unchanged.
namespace hone::schedule {

// Moves a block under a loop, before the first block there that reads its result, and makes it
// compute exactly what one iteration of the loop needs. New loops over the needed region, then over
// the block's reductions, replace its old loops. Legal if every reader is under the loop, the block
// is not, and it has one output, which it writes at its own iteration variables.
absl::Status ComputeAt(ir::Program& program, ir::NodeId block, ir::NodeId loop);

// Moves a block under a loop, after the last block there that produces its inputs, and makes it
// consume exactly what one iteration of the loop produces. Legal if the block has no guards and is
// the only writer of its output, and every computed buffer that it reads is complete before the
// loop's nest, or is written under the loop, is complete there (no enclosing loop reduces), is
// written at places that differ between iterations, and is read at the block's own iteration
// variables.
absl::Status ReverseComputeAt(ir::Program& program, ir::NodeId block, ir::NodeId loop);

// Replaces every read of the block's buffer with its expression and removes the block. Legal if the
// block does not reduce, writes at its own iteration variables, and its buffer is not an output.
absl::Status ComputeInline(ir::Program& program, ir::NodeId block);

// Merges a block into the producer of its input: the producer computes the block's result as its
// last operation, and the block is removed.
//   T[i] = f(i); O[j] = g(T[j + 1], X[j])  →  O[i − 1] = g(f(i), X[i − 1]) where 0 ≤ i − 1
// Legal if neither block reduces; the block reads one element of T, at indices that are constants
// or one of its own iteration variables plus a constant; T is not an output and has no other
// reader; both buffers have one writer; and the other inputs are complete before the producer's
// nest.
absl::Status ReverseComputeInline(ir::Program& program, ir::NodeId block);

// Makes a reduction loop spatial: its iterations compute partial results, which the block combines
// in a nest after the outermost loop that it reduces over.
//   for i, for k_0, for k_1: C[i] += …  →  for i {for k_0, for k_1: C_rf[i, k_1] += …; for k_1:
//   C[i] += C_rf[i, k_1]}
// Used to divide sums among threads (split-K) or lanes. `axis` is the position of the new dimension
// in the buffer of partial results; −1 means last. Returns the new block (C_rf), which takes the
// loops; the original block combines. Legal for a serial loop over which the block only reduces, if
// the block has its init, no other block under its reduction loops uses the result, and the loops
// compute every element once. Floating-point sums are reassociated.
absl::StatusOr<ir::NodeId> Rfactor(ir::Program& program, ir::NodeId block, ir::NodeId loop,
                                   int64_t axis);

// Moves the initialization of a reduction into a new block before `loop`. Returns the new block.
// Legal if the loop is above the block, no loop above it reduces, no other block under it writes
// the result, the loops under it compute every element once, and the block still has its init.
absl::StatusOr<ir::NodeId> DecomposeReduction(ir::Program& program, ir::NodeId block,
                                              ir::NodeId loop);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_PLACEMENT_H_
