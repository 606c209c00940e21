#ifndef HONE_WORKER_CODEGEN_C_C_STRIDES_H_
#define HONE_WORKER_CODEGEN_C_C_STRIDES_H_

#include "common/ir/workload.h"
#include "common/lower/lowered.h"

namespace hone::codegen {

// The strides of a buffer in elements, outermost first. They shape the text only: offsets are
// complete without them.
inline ir::Shape StridesOf(const lower::LoweredProgram& program, ir::BufferId buffer) {
  if (!program.storage[buffer].strides.empty()) return program.storage[buffer].strides;
  const ir::Shape& shape = program.buffers[buffer].shape;
  ir::Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_C_C_STRIDES_H_
