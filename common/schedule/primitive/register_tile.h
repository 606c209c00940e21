#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_REGISTER_TILE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_REGISTER_TILE_H_

#include "absl/status/statusor.h"
#include "common/ir/program.h"

namespace hone::schedule {

// The loops that remain outside a register tile.
struct RegisterTiled {
  ir::NodeId row;     // tiles along the row loop
  ir::NodeId vector;  // tiles along the vector loop
  ir::NodeId reduce;  // steps of k_unroll along the reduction loop
};

// Tiles the innermost contraction of a reduction block for the micro-kernel: rows × vectors
// accumulators stay in registers while the reduction loops run around them.
//   for i, …, for j, …, for k  →  … for k_0 | for k_1 in k_unroll (unrolled) | for i_1 in rows
//   (unrolled) | for j_1 in vectors (unrolled) | for j_2 in lanes (vectorized), with i_0, j_0 and
//   k_0 in the places of i, j and k.
// Extents that are not multiples of rows, vectors × lanes or k_unroll get a predicate; lowering
// makes the remainder a separate tile. Legal if i and j are serial spatial loops and k is a serial
// reduction loop of the block, all in a nest without other content.
absl::StatusOr<RegisterTiled> RegisterTile(ir::Program& program, ir::NodeId block, ir::NodeId row,
                                           ir::NodeId vector, ir::NodeId reduce, ir::Extent rows,
                                           ir::Extent vectors, int64_t lanes, ir::Extent k_unroll);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_REGISTER_TILE_H_
