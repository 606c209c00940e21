#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_LOOPS_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_LOOPS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/ir/program.h"

// Loops cut, joined and exchanged. Errors of all: FailedPrecondition, with the program printed and
// the loop marked; the program is unchanged.
namespace hone::schedule {

// Cuts a loop into nested loops of the given extents, outermost first; the first may be 0 and is
// then inferred (rounded up).
//   for i in n  →  for i_0 in f0, for i_1 in f1: i = i_0·f1 + i_1, with the predicate i < n where
//   the product exceeds n.
// Legal for serial loops without annotations. Refused: an extent below 1, a product below n, or an
// outer iteration that would never run.
absl::StatusOr<std::vector<ir::NodeId>> Split(ir::Program& program, ir::NodeId loop,
                                              std::vector<ir::Extent> factors);

// Joins consecutive loops into one, outermost first: for i in n, for j in m  →  for ij in n·m.
// Legal when each is serial, without annotations, and the only content of the one before.
absl::StatusOr<ir::NodeId> Fuse(ir::Program& program, absl::Span<const ir::NodeId> loops);

// Puts a loop of one iteration around a loop or block. Legal everywhere but in a tensor nest.
absl::StatusOr<ir::NodeId> AddUnitLoop(ir::Program& program, ir::NodeId node);

// Cuts the iterations of a loop into consecutive ranges, one loop after the other; `at` are the
// first iterations of the second range and those after it. The first range keeps the nodes of the
// loop's content, the others get copies (block C: C_part, …).
//   for i in n {…}  →  for i_0 in p {… i = i_0}, for i_1 in n − p {… i = p + i_1}
// Legal for serial loops, as the order is kept. Refused: points that are not increasing within the
// loop, a loop that carries spatial and reduction iterations of a block, more than 16 ranges or 256
// blocks, and where a parallel loop below loses what was private to it.
absl::StatusOr<std::vector<ir::NodeId>> LoopPartition(ir::Program& program, ir::NodeId loop,
                                                      const std::vector<ir::Extent>& at);

// Runs through the plane of two nested loops in an order that keeps near iterations near; one loop
// is left, which may then be parallel. "grouped": bands of `group` outer iterations, column by
// column. "morton": by the interleaved bits of both, for extents that are powers of two; `group` is
// ignored. Legal where Split, Reorder and Fuse are that this is made of.
absl::StatusOr<ir::NodeId> ReorderSpace(ir::Program& program, ir::NodeId outer, ir::NodeId inner,
                                        absl::string_view order, ir::Extent group);

// Puts loops of one nest into the given order; the loops of the nest between them that are not
// named keep their places. Legal when they lie on one path without other content between the first
// and the last: every block is a set of independent or reduction iterations, so any order computes
// the same (floating-point sums are reassociated). Refused where a reduction would be seen
// unfinished, run twice over an element, or begin elsewhere than at its init.
absl::Status Reorder(ir::Program& program, absl::Span<const ir::NodeId> loops);

// Reorder, with the order taken from a list: "0 1 2 | 1 0 2" are two orders of three loops, and
// `choice` counts them from 0. So an order can be a decision. InvalidArgument: there is no such
// order, or it is not one of these loops.
absl::Status ReorderBy(ir::Program& program, absl::Span<const ir::NodeId> loops,
                       absl::string_view orders, int64_t choice);

// Parallel: the iterations run on several threads. Legal when no block under the loop reduces over
// it, no other parallel loop is above or below, and every buffer written under it is either written
// at different places by different iterations, or used only under the loop: then it is private to
// each iteration.
absl::Status Parallel(ir::Program& program, ir::NodeId loop);

// Thread count: a parallel loop runs on that many threads, at most one per iteration; 1: it does
// not fork. Without it the loop takes every core of the target. Legal for parallel loops; from 1 to
// 1024.
absl::Status ThreadCount(ir::Program& program, ir::NodeId loop, ir::Extent threads);

// Bind: the iterations run on an axis of a GPU ("blockIdx.x" … "threadIdx.z", "vthread"). Legal as
// Parallel is, for a serial loop without a parallel or vectorized one around it; blockIdx axes lie
// outside of threadIdx axes, an axis occurs once on a path (vthread: any number), and has one
// extent in its kernel. CPUs have no code for it.
absl::Status Bind(ir::Program& program, ir::NodeId loop, absl::string_view axis);

// Vectorize: the iterations are lanes. Legal for a loop that contains blocks alone, over which none
// of them reduces, and whose lanes write different places; and for one over which its only block
// reduces to one value: the lanes are combined in halves, so that float sums round in another
// order. At most 64 lanes.
absl::Status Vectorize(ir::Program& program, ir::NodeId loop);

// Unroll: the body is repeated. Legal everywhere; at most 1024 iterations.
absl::Status Unroll(ir::Program& program, ir::NodeId loop);

// Leaves a loop as it is, unrolls or vectorizes it, by number, so that what a loop becomes can be a
// decision. Legal as Unroll and Vectorize are. InvalidArgument: another number.
inline constexpr int64_t kKeepSerial = 0, kUnroll = 1, kVectorize = 2;
absl::Status SetLoopKind(ir::Program& program, ir::NodeId loop, int64_t kind);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_LOOPS_H_
