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
// reduction), and how many iterations a thread takes at once. If the block reads `planes`, the
// innermost spatial loop is divided by them, so that a vector reads one plane:
//   for i, for k  →  parallel i.k_0 | unrolled k_2 | vectorized k_1
void SchedulePlainNest(schedule::TraceBuilder& trace, const schedule::Operand& block_register,
                       const ir::Block& block, int64_t lanes, bool sampled, int64_t planes = 1);

// The number n of planes if a block copies element k / n of plane k % n to element k of its last
// spatial axis, as from channels first to pixels with few channels, and the elements are too short
// to be gathered; 1 otherwise.
int64_t PlanesOf(const ir::Program& program, const ir::Block& block);

}  // namespace hone::space

#endif  // HONE_SERVER_TUNER_SPACE_PLAIN_NEST_H_
