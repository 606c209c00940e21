#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_PLACEMENT_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_PLACEMENT_H_

#include "absl/status/statusor.h"
#include "common/ir/program.h"

// Where a block is computed. Errors: FailedPrecondition, with the program printed and the node
// marked; the program is unchanged.
namespace hone::schedule {

// Moves a block under a loop, before the first block there that reads it, and makes it compute just
// what one iteration of the loop needs. Its former loops are gone; the new ones run over the needed
// region, then over its reductions. Legal when every reader is under the loop, the block is not,
// and it writes its one buffer at its own iteration variables.
absl::Status ComputeAt(ir::Program& program, ir::NodeId block, ir::NodeId loop);

// Moves a block under a loop, after the last block there that writes what it reads, and makes it
// consume just what one iteration of the loop produces. Legal when it has no guards and is the only
// writer of what it writes, and all it reads of computed buffers is written under the loop,
// complete there (no loop around reduces), at places that differ between iterations, and is read at
// its own iteration variables.
absl::Status ReverseComputeAt(ir::Program& program, ir::NodeId block, ir::NodeId loop);

// Replaces every read of the block's buffer by its expression, and removes the block.
// Legal when the block does not reduce, writes at its own iteration variables, and its buffer is no
// output.
absl::Status ComputeInline(ir::Program& program, ir::NodeId block);

// Lets the block that computes what this one reads write this one's result instead: it becomes the
// last thing that the producer does, and the block is gone.
//   T[i] = f(i); O[j] = g(T[j + 1], X[j])  →  O[i − 1] = g(f(i), X[i − 1]) where 0 ≤ i − 1
// Legal when neither reduces, the block reads one element of T, at indices that are an iteration
// variable of its own plus a constant or a constant, T is no output and read by nobody else, each
// of both buffers has one writer, and all else that the block reads is complete before the
// producer's nest.
absl::Status ReverseComputeInline(ir::Program& program, ir::NodeId block);

// Makes a reduction loop spatial: its iterations get partial results of their own, and the block
// combines these in a nest after the outermost loop that it reduces over.
//   for i, for k_0, for k_1: C[i] += …  →  for i {for k_0, for k_1: C_rf[i, k_1] += …; for k_1:
//   C[i] += C_rf[i, k_1]}
// So sums are cut among threads (split-K) or lanes. `axis` is where the buffer of partial results
// has the new dimension; −1: last. Returns the new block (C_rf), which takes the loops; the block
// itself becomes the one that combines. Legal for a serial loop over which alone the block reduces
// (no loop that is also spatial), when the block has its init, no other block under its reductions
// uses the result, and the loops compute every element once. Floating-point sums are reassociated.
absl::StatusOr<ir::NodeId> Rfactor(ir::Program& program, ir::NodeId block, ir::NodeId loop,
                                   int64_t axis);

// Gives the block of a reduction its own block that stores the neutral element, before `loop`.
// Returns the new block. Legal when the loop is above the block, no loop above it reduces, no other
// block under it writes the result, the loops under it compute every element once, and the block
// still has its init.
absl::StatusOr<ir::NodeId> DecomposeReduction(ir::Program& program, ir::NodeId block,
                                              ir::NodeId loop);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_PLACEMENT_H_
