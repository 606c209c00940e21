#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_LOOPS_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_LOOPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

// Loops cut, joined and exchanged. Errors of all: FailedPrecondition, with the program printed and the loop marked; the
// program is unchanged.
namespace hone::schedule {

// Cuts a loop into nested loops of the given extents, outermost first; the first may be 0 and is then inferred (rounded up).
//   for i in n  →  for i_0 in f0, for i_1 in f1: i = i_0·f1 + i_1, with the predicate i < n where the product exceeds n.
// Legal for serial loops. Refused: an extent below 1, a product below n, or an outer iteration that would never run.
absl::StatusOr<std::vector<ir::NodeId>> Split(ir::Program& program, ir::NodeId loop, std::vector<ir::Extent> factors);

// Joins consecutive loops into one, outermost first: for i in n, for j in m  →  for ij in n·m.
// Legal when each is serial and the only content of the one before.
absl::StatusOr<ir::NodeId> Fuse(ir::Program& program, absl::Span<const ir::NodeId> loops);

// Puts loops of one nest into the given order; the loops of the nest between them that are not named keep their places.
// Legal when they lie on one path without other content between the first and the last: every block is a set of independent
// or reduction iterations, so any order computes the same (floating-point sums are reassociated). Refused where a reduction
// would be seen unfinished, run twice over an element, or begin elsewhere than at its init.
absl::Status Reorder(ir::Program& program, absl::Span<const ir::NodeId> loops);

// Parallel: the iterations run on several threads. Legal when no block under the loop reduces over it, no other parallel loop
// is above or below, and every buffer written under it is either written at different places by different iterations, or used
// only under the loop: then it is private to each iteration.
absl::Status Parallel(ir::Program& program, ir::NodeId loop);

// Vectorize: the iterations are lanes. Legal for a loop that contains blocks alone, over which none of them reduces, and
// whose lanes write different places; at most 64 lanes.
absl::Status Vectorize(ir::Program& program, ir::NodeId loop);

// Unroll: the body is repeated. Legal everywhere; at most 1024 iterations.
absl::Status Unroll(ir::Program& program, ir::NodeId loop);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_LOOPS_H_
