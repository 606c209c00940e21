#ifndef HONE_WORKER_COMPILE_C_C_BUFFER_H_
#define HONE_WORKER_COMPILE_C_C_BUFFER_H_

#include "common/ir/workload.h"
#include "worker/compile/lower/lowered.h"

// Properties of buffers in the printed text.
namespace hone::codegen {

// Returns the strides of a buffer in elements, outermost first. They only affect how offsets are
// written, not their values.
inline ir::Shape StridesOf(const lower::LoweredProgram& program, ir::BufferId buffer) {
  if (!program.storage[buffer].strides.empty()) return program.storage[buffer].strides;
  const ir::Shape& shape = program.buffers[buffer].shape;
  ir::Shape strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

// Returns whether a buffer is printed as a variable: it is private and has one element.
inline bool IsScalar(const lower::LoweredProgram& program, ir::BufferId buffer) {
  const lower::Storage& storage = program.storage[buffer];
  return storage.elements == 1 && (storage.kind == lower::Storage::Kind::kStack ||
                                   storage.kind == lower::Storage::Kind::kRegister);
}

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_C_C_BUFFER_H_
