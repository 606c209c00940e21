#ifndef HONE_WORKER_CODEGEN_LLVM_OPENMP_H_
#define HONE_WORKER_CODEGEN_LLVM_OPENMP_H_

#include <cstdint>

#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

// Emits a call at the builder's position: `threads` OpenMP threads (more than one) run
// body(context, begin, end, thread) over parts of [0, extent). `chunk` 0: each thread gets an equal
// share; otherwise threads fetch `chunk` iterations at a time. Uses the entry points of GCC's
// runtime, which LLVM's runtime also provides.
void EmitFork(llvm::IRBuilder<>& builder, llvm::Function* body, llvm::Value* context,
              int64_t extent, int threads, int64_t chunk);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_LLVM_OPENMP_H_
