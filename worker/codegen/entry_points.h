#ifndef HONE_WORKER_CODEGEN_ENTRY_POINTS_H_
#define HONE_WORKER_CODEGEN_ENTRY_POINTS_H_

#include "common/target/target.h"
#include "worker/codegen/function_emitter.h"

namespace hone::codegen {

// Emits the C interface of common/target/kernel_abi.h around the kernels: `prepack` may be null.
void EmitEntryPoints(ModuleState& state, const target::Target& target, llvm::Function* prepack, llvm::Function* main);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_ENTRY_POINTS_H_
