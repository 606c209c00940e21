#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_TENSORIZE_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_TENSORIZE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/ir/program.h"

namespace hone::schedule {

// Whether a node is part of a tensor nest (blockize). Primitives may not change the inside of one.
inline bool InTensorNest(const ir::Program& program, ir::NodeId node) {
  for (; node != ir::kNoNode; node = program.node(node).parent) {
    if (program.IsLoop(node) && program.node(node).loop == ir::LoopKind::kTensor) return true;
  }
  return false;
}

// Primitives that make a nest one unit. FailedPrecondition: illegal; the message prints the program
// with the node marked, and the program is unchanged.

// Makes a loop and the nest under it one unit: its loops become tensor loops, and no other
// primitive looks inside. Legal for directly nested serial loops without annotations around one
// block, not under a vectorized loop. A unit that no instruction computes runs as serial loops.
absl::Status Blockize(ir::Program& program, ir::NodeId loop);

// Makes an instruction of common/ir/intrinsic.h compute the nest under a loop; includes Blockize.
// The nest still defines what is computed, and the interpreter runs it. Legal if the loops, their
// extents, the expression and the memory accesses of all operands match the instruction's
// description, and no predicate or guard of the block depends on the loops. Code generation checks
// that the target has the instruction. InvalidArgument: unknown instruction; the message lists the
// names.
absl::Status Tensorize(ir::Program& program, ir::NodeId loop, absl::string_view intrinsic);

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_TENSORIZE_H_
