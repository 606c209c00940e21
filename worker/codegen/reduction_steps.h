#ifndef HONE_WORKER_CODEGEN_REDUCTION_STEPS_H_
#define HONE_WORKER_CODEGEN_REDUCTION_STEPS_H_

#include "common/lower/lowered.h"
#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

// Returns whether each iteration of an unrolled loop updates a large tile of accumulators in
// registers.
bool StepsThroughTile(const lower::LoweredProgram& program, const lower::Stmt& loop);

// Keeps the code of two such steps apart. LLVM's code generator moves loads of nearby addresses to
// the first of them. These are the operands of several steps, and there are no registers for them
// beside the accumulators. LLVM moves nothing across this barrier, which emits no instruction.
void SeparateSteps(llvm::IRBuilder<>& builder);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_REDUCTION_STEPS_H_
