#ifndef HONE_WORKER_COMPILE_LLVM_MODELLED_COST_H_
#define HONE_WORKER_COMPILE_LLVM_MODELLED_COST_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// The code of one basic block.
struct ModelledBlock {
  std::string name;       // FUNCTION/BLOCK of LLVM IR
  double executions = 0;  // in one run of the kernel, by the busiest thread
  double cycles = 0;      // of each execution, when the block runs again and again
  int64_t instructions = 0;
};

// What a run of a kernel costs by LLVM's model of the CPU. Nothing runs on that CPU.
struct ModelledCost {
  double cycles = 0;
  std::vector<ModelledBlock> blocks;  // those that run, the costliest first
};

// Generates code for a CPU and models it: the sum over the basic blocks of how often a block runs
// (executions.h) times its cycles by LLVM's machine code analysis. The iterations of parallel loops
// are divided by the cores of the target. It knows no caches, no memory, no mispredicted branches,
// no start of threads, and of each block only its steady state. Deterministic. InvalidArgument:
// LLVM has no model of the CPU, or as for Compile. Unimplemented: the target is not a CPU, a branch
// depends on the data, or as for Compile.
absl::StatusOr<ModelledCost> ModelCost(const lower::LoweredProgram& program,
                                       const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_MODELLED_COST_H_
