#ifndef HONE_WORKER_COMPILE_LLVM_TENSOR_H_
#define HONE_WORKER_COMPILE_LLVM_TENSOR_H_

#include "absl/status/status.h"
#include "worker/compile/llvm/memory_emitter.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Emits a store that one instruction computes, as matched by the primitive tensorize. Internal: it
// is under a mask, or its operands do not have the layout that the instruction needs.
absl::Status EmitIntrinsic(FunctionContext& f, IndexEmitter& index, MemoryEmitter& memory,
                           const lower::Stmt& store, llvm::Value* mask);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_TENSOR_H_
