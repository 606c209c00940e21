#ifndef HONE_WORKER_COMPILE_LLVM_LLVM_BACKEND_H_
#define HONE_WORKER_COMPILE_LLVM_LLVM_BACKEND_H_

#include "worker/compile/backend.h"

namespace hone::codegen {

// Machine code for CPUs, generated with LLVM.
const Backend* LlvmBackend();

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_LLVM_BACKEND_H_
