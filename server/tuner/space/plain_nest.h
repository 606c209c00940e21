#ifndef HONE_SERVER_TUNER_SPACE_PLAIN_NEST_H_
#define HONE_SERVER_TUNER_SPACE_PLAIN_NEST_H_

#include <cstdint>

#include "common/ir/program.h"
#include "common/schedule/trace.h"

namespace hone::space {

// Schedules a block that is still in its own, untouched nest, without tiling. The outer spatial
// loops are fused and parallel, and the reductions run inside them. The innermost spatial loop is
// vectorized, split by `lanes` if it is longer.
//   for i, for j, for k  →  parallel i.j_0 | for k | vectorized j_1
// If `sampled`, up to two decisions are left open: how many vectors are unrolled (not for a
// reduction), and how many iterations a thread takes at once.
void SchedulePlainNest(schedule::TraceBuilder& trace, const schedule::Operand& block_register,
                       const ir::Block& block, int64_t lanes, bool sampled);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_PLAIN_NEST_H_
