#ifndef HONE_WORKER_COMPILE_LLVM_INLINE_OPERATIONS_H_
#define HONE_WORKER_COMPILE_LLVM_INLINE_OPERATIONS_H_

#include "llvm/IR/Module.h"

namespace hone::codegen {

// For CPUs of 32 bits whose FPU does not round to integers: replaces divisions of i64, conversions
// between i64 and floats, and rint, floor, ceil and trunc with instructions that these CPUs have.
// LLVM would call library functions, which costs more and spills all vectors. All results are exact
// or rounded once, as before. Without `divides_i32`, the CPU has no division of integers at all.
void InlineOperations(llvm::Module& module, bool divides_i32);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_INLINE_OPERATIONS_H_
