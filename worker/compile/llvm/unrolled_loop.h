#ifndef HONE_WORKER_COMPILE_LLVM_UNROLLED_LOOP_H_
#define HONE_WORKER_COMPILE_LLVM_UNROLLED_LOOP_H_

#include <cstdint>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/IRBuilder.h"
#include "worker/compile/lower/lowered.h"

// The order of the code of an unrolled loop's iterations: separate where registers are scarce,
// alternating where each of them waits for itself.
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

// Returns how many iterations should be computed side by side: some if each of them computes
// elementary functions, and stores elements that no other one reads or stores, else 1. Each step of
// such a function waits for the one before, and a CPU looks at too few instructions to begin with
// the next iteration meanwhile. A function with a branch (MathBuilder::IfSmall) ends a block, so it
// stays where it is.
int64_t IterationsSideBySide(const lower::LoweredProgram& program, const lower::Stmt& loop,
                             int vector_bits);

// Reorders the end of a block that consists of the code of some iterations, each up to the next of
// `firsts`, so that they take turns. Operands stay before their uses. LLVM's code generator keeps
// this order, because its schedulers are off (Passes::schedule).
void PlaceSideBySide(llvm::ArrayRef<llvm::Instruction*> firsts);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_UNROLLED_LOOP_H_
