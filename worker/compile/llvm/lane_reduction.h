#ifndef HONE_WORKER_COMPILE_LLVM_LANE_REDUCTION_H_
#define HONE_WORKER_COMPILE_LLVM_LANE_REDUCTION_H_

#include "worker/compile/llvm/expr_emitter.h"

namespace hone::codegen {

// Returns whether a store combines all lanes into one element.
bool ReducesLanes(const FunctionContext& f, const IndexEmitter& index, const lower::Stmt& store);

// Emits such a store: the lanes are combined in halves, then with the element.
absl::Status EmitLaneReduction(FunctionContext& f, ExprEmitter& exprs, MemoryEmitter& memory,
                               const lower::Stmt& store, llvm::Value* mask);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_LANE_REDUCTION_H_
