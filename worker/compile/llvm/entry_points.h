#ifndef HONE_WORKER_COMPILE_LLVM_ENTRY_POINTS_H_
#define HONE_WORKER_COMPILE_LLVM_ENTRY_POINTS_H_

#include "worker/compile/llvm/function_context.h"

namespace hone::codegen {

// Emits the C interface of common/target/kernel_abi.h around the kernels. `prepack` may be null.
// Every entry point calls `cpu_guard` (Machine::EmitCpuGuard) first.
void EmitEntryPoints(ModuleState& state, llvm::Function* cpu_guard, llvm::Function* prepack,
                     llvm::Function* main);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_ENTRY_POINTS_H_
