#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_LOOPS_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_LOOPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Loop transformations. FailedPrecondition: illegal; the message prints the program with the loop
// marked, and the program is unchanged.

// Splits a loop into nested loops of the given extents, outermost first. The first extent may be 0
// and is then inferred (rounded up).
//   for i in n  →  for i_0 in f0, for i_1 in f1: i = i_0·f1 + i_1, with the predicate i < n if the
//   product exceeds n.
// Legal for serial loops without annotations. Every extent must be positive, the product at least
// n, and every outer iteration must do some work.
absl::StatusOr<std::vector<ir::NodeId>> Split(ir::Program& program, ir::NodeId loop,
                                              absl::Span<const ir::Extent> factors);

// Fuses directly nested loops into one, outermost first: for i in n, for j in m  →  for ij in n·m.
// Legal if each is serial, has no annotations, and is the only content of the loop around it.
absl::StatusOr<ir::NodeId> Fuse(ir::Program& program, absl::Span<const ir::NodeId> loops);

// Puts a loop of one iteration around a loop or block. Legal outside tensor nests.
absl::StatusOr<ir::NodeId> AddUnitLoop(ir::Program& program, ir::NodeId node);

// Partitions a loop into consecutive ranges, one loop after the other. `at` lists the first
// iterations of the second and later ranges. The first range keeps the nodes of the loop's content,
// the others get copies (block C: C_part, …).
//   for i in n {…}  →  for i_0 in p {… i = i_0}, for i_1 in n − p {… i = p + i_1}
// Legal for serial loops, because the order is kept. `at` must increase and lie within the loop.
// Illegal for a loop that carries both spatial and reduction iterations of a block, for more than
// 16 ranges or 256 blocks, and if an inner parallel loop would lose a private buffer.
absl::StatusOr<std::vector<ir::NodeId>> LoopPartition(ir::Program& program, ir::NodeId loop,
                                                      absl::Span<const ir::Extent> at);

// Traverses two nested loops in an order with better locality. Leaves one loop, which may then be
// made parallel. "grouped": bands of `group` outer iterations, column by column. "morton": by the
// interleaved bits of both, for extents that are powers of two; `group` is ignored. Legal if the
// necessary Split, Reorder and Fuse are.
absl::StatusOr<ir::NodeId> ReorderSpace(ir::Program& program, ir::NodeId outer, ir::NodeId inner,
                                        absl::string_view order, ir::Extent group);

// Puts loops of one nest into the given order. Other loops of the nest keep their positions. Legal
// if the loops lie on one path without other content between the first and the last: a block's
// iterations are independent or belong to a reduction, so any order computes the same
// (floating-point sums are reassociated). Illegal if an unfinished reduction would be read, if an
// element would be reduced twice, or if a reduction would not begin with its init.
absl::Status Reorder(ir::Program& program, absl::Span<const ir::NodeId> loops);

// Reorder with an order chosen from a list, so that the order can be a decision. "0 1 2 | 1 0 2"
// are two orders of three loops; `choice` counts them from 0. InvalidArgument: no such order, or it
// does not match the loops.
absl::Status ReorderBy(ir::Program& program, absl::Span<const ir::NodeId> loops,
                       absl::string_view orders, int64_t choice);

// Runs the iterations on several threads. Legal if no block under the loop reduces over it, no
// other parallel loop is above or below, and for every buffer that is written under the loop:
// different iterations write different places, or it is used only there (then it becomes private).
absl::Status Parallel(ir::Program& program, ir::NodeId loop);

// Sets the number of threads of a parallel loop, at most one per iteration; 1 means no fork. By
// default, the loop uses every core of the target. Legal for parallel loops; 1 to 1024 threads.
absl::Status ThreadCount(ir::Program& program, ir::NodeId loop, ir::Extent threads);

// Runs the iterations on an axis of a GPU ("blockIdx.x" … "threadIdx.z", "vthread"). Legal under
// the conditions of Parallel, for a serial loop that is not inside a parallel or vectorized one.
// blockIdx axes must be outside threadIdx axes. An axis occurs once on a path (vthread: any number
// of times) and has the same extent in a whole nest, which is one launch. Not for CPU targets.
absl::Status Bind(ir::Program& program, ir::NodeId loop, absl::string_view axis);

// Makes the iterations lanes of a vector. Legal if the loop contains only blocks, no block reduces
// over it, and lanes write different places. Also legal if its only block reduces over it to one
// value: the lanes are then combined in halves, which changes the rounding of float sums. At most
// 64 lanes.
absl::Status Vectorize(ir::Program& program, ir::NodeId loop);

// Repeats the body. Legal for serial loops of at most 1024 iterations.
absl::Status Unroll(ir::Program& program, ir::NodeId loop);

// Keeps a loop serial, unrolls or vectorizes it, by number, so that the kind can be a decision.
// Legal as Unroll and Vectorize are. InvalidArgument: another number.
inline constexpr int64_t kKeepSerial = 0, kUnroll = 1, kVectorize = 2;
absl::Status SetLoopKind(ir::Program& program, ir::NodeId loop, int64_t kind);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_LOOPS_H_
