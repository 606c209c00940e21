#ifndef HONE_WORKER_CODEGEN_OPENMP_H_
#define HONE_WORKER_CODEGEN_OPENMP_H_

#include <cstdint>

#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

// Emits at the builder's place: `threads` OpenMP threads (more than one) run body(context, begin,
// end, thread) over parts of [0, extent). `chunk` 0: an equal share for each thread; else threads
// fetch `chunk` iterations at a time. By the entry points of GCC's runtime, which LLVM's offers
// too.
void EmitFork(llvm::IRBuilder<>& builder, llvm::Function* body, llvm::Value* context,
              int64_t extent, int threads, int64_t chunk);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_OPENMP_H_
