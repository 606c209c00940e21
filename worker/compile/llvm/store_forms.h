#ifndef HONE_WORKER_COMPILE_LLVM_STORE_FORMS_H_
#define HONE_WORKER_COMPILE_LLVM_STORE_FORMS_H_

#include "absl/status/status.h"
#include "worker/compile/llvm/expr_emitter.h"
#include "worker/compile/llvm/memory_emitter.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Returns whether a store combines all lanes into one element.
bool ReducesLanes(const FunctionContext& f, const IndexEmitter& index, const lower::Stmt& store);

// Emits such a store: the lanes are combined in halves, then with the element.
absl::Status EmitLaneReduction(FunctionContext& f, ExprEmitter& exprs, MemoryEmitter& memory,
                               const lower::Stmt& store, llvm::Value* mask);

// Emits a store that one instruction of the shape kDot computes, as matched by the primitive
// tensorize. Internal: it is under a mask, or its operands do not have the layout that the
// instruction needs.
absl::Status EmitIntrinsic(FunctionContext& f, IndexEmitter& index, MemoryEmitter& memory,
                           const lower::Stmt& store, llvm::Value* mask);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_STORE_FORMS_H_
