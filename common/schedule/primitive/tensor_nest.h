#ifndef HONE_COMMON_SCHEDULE_PRIMITIVE_TENSOR_NEST_H_
#define HONE_COMMON_SCHEDULE_PRIMITIVE_TENSOR_NEST_H_

#include "common/ir/program.h"

namespace hone::schedule {

// Whether a node is part of a tensor nest (blockize). Primitives may not change the inside of one.
inline bool InTensorNest(const ir::Program& program, ir::NodeId node) {
  for (; node != ir::kNoNode; node = program.node(node).parent) {
    if (program.IsLoop(node) && program.node(node).loop == ir::LoopKind::kTensor) return true;
  }
  return false;
}

}  // namespace hone::schedule

#endif  // HONE_COMMON_SCHEDULE_PRIMITIVE_TENSOR_NEST_H_
