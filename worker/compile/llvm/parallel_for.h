#ifndef HONE_WORKER_COMPILE_LLVM_PARALLEL_FOR_H_
#define HONE_WORKER_COMPILE_LLVM_PARALLEL_FOR_H_

#include <cstdint>

#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

// Emits a parallel loop at the builder's position: the caller's runtime (HoneRuntime of
// common/target/kernel_abi.h) runs body(context, begin, end, thread) over parts of [0, extent), on
// at most `threads` threads. If it has one thread, or `runtime` is null, the body is called once.
// `chunk` is as in HoneRuntime.
void EmitParallelFor(llvm::IRBuilder<>& builder, llvm::Function* body, llvm::Value* context,
                     llvm::Value* runtime, int64_t extent, int threads, int64_t chunk);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_PARALLEL_FOR_H_
