#ifndef HONE_WORKER_CODEGEN_C_C_BUFFER_H_
#define HONE_WORKER_CODEGEN_C_C_BUFFER_H_

#include "common/ir/workload.h"
#include "common/lower/lowered.h"

// How the text shows buffers.
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

// Whether a buffer is a variable instead of an array: one element of a thread.
inline bool IsScalar(const lower::LoweredProgram& program, ir::BufferId buffer) {
  const lower::Storage& storage = program.storage[buffer];
  return storage.elements == 1 && (storage.kind == lower::Storage::Kind::kStack ||
                                   storage.kind == lower::Storage::Kind::kRegister);
}

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_C_C_BUFFER_H_
