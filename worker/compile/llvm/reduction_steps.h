#ifndef HONE_WORKER_COMPILE_LLVM_REDUCTION_STEPS_H_
#define HONE_WORKER_COMPILE_LLVM_REDUCTION_STEPS_H_

#include "llvm/IR/IRBuilder.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Returns whether each iteration of an unrolled loop updates a large tile of accumulators in
// registers.
bool StepsThroughTile(const lower::LoweredProgram& program, const lower::Stmt& loop);

// Separates the code of two such steps. LLVM's code generator would move the loads of nearby
// addresses in several steps to the first of these loads, but the accumulators leave no registers
// for so many operands. LLVM moves nothing across this barrier, which is not an instruction.
void SeparateSteps(llvm::IRBuilder<>& builder);

// Returns whether an instruction is that barrier.
bool SeparatesSteps(const llvm::Instruction& instruction);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_REDUCTION_STEPS_H_
