#ifndef HONE_SERVER_SPACE_PLAIN_NEST_H_
#define HONE_SERVER_SPACE_PLAIN_NEST_H_

#include <cstdint>

#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::space {

// Schedules a block that is still in its own, untouched nest, without tiles: the outer spatial
// loops are fused and parallel, the reductions run inside them, the innermost spatial loop is
// vectorized, cut by `lanes` when it is longer.
//   for i, for j, for k  →  parallel i.j_0 | for k | vectorized j_1
// With `sampled` two decisions are left open where they make a difference: how many vectors are
// unrolled (not of a reduction), and how many iterations a thread takes at once.
void SchedulePlainNest(schedule::TraceBuilder& trace, const schedule::Operand& block_register,
                       const ir::Block& block, int64_t lanes, bool sampled);

}  // namespace hone::space

#endif  // HONE_SERVER_SPACE_PLAIN_NEST_H_
