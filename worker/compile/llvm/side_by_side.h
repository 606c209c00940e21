#ifndef HONE_WORKER_COMPILE_LLVM_SIDE_BY_SIDE_H_
#define HONE_WORKER_COMPILE_LLVM_SIDE_BY_SIDE_H_

#include <cstdint>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/IR/Instruction.h"
#include "worker/compile/lower/lowered.h"

// The order of the code of an unrolled loop that computes elementary functions. Each step of such a
// function waits for the one before, and a CPU looks at too few instructions to begin with the next
// iteration meanwhile. So the code of some iterations alternates. LLVM's code generator keeps this
// order, because its schedulers are off (Passes::schedule).
namespace hone::codegen {

// Returns how many iterations of an unrolled loop should be computed side by side; 1 unless each of
// them only stores elements that no other iteration reads.
int64_t IterationsSideBySide(const lower::LoweredProgram& program, const lower::Stmt& loop,
                             int vector_bits);

// Reorders the end of a block that consists of the code of some iterations, each up to the next of
// `firsts`, so that they take turns. Operands stay before their uses.
void PlaceSideBySide(llvm::ArrayRef<llvm::Instruction*> firsts);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_SIDE_BY_SIDE_H_
