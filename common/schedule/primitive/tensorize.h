#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_TENSORIZE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_TENSORIZE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

// Nests that are one unit. FailedPrecondition: with the program printed and the node marked; the
// program is unchanged.
namespace hone::schedule {

// Makes the nest under a loop, and the loop, one unit: its loops become of kind tensor, and no
// other primitive looks inside. Legal for serial loops without annotations, one in the other down
// to one block, not under a vectorized loop. A unit that no instruction computes runs as serial
// loops.
absl::Status Blockize(ir::Program& program, ir::NodeId loop);

// Lets an instruction of the table in common/ir/intrinsic.h compute the nest under a loop; Blockize
// is part of it. What the block computes stays the nest, which the interpreter runs. Legal when the
// loops, their extents, the expression and the places in memory of all operands are those of the
// instruction's description, and no predicate or guard of the block depends on the loops. Whether a
// target has the instruction is seen when code is generated. InvalidArgument: an unknown name; the
// message lists them.
absl::Status Tensorize(ir::Program& program, ir::NodeId loop, absl::string_view intrinsic);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_TENSORIZE_H_
