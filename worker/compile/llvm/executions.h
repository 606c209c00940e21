#ifndef HONE_WORKER_COMPILE_LLVM_EXECUTIONS_H_
#define HONE_WORKER_COMPILE_LLVM_EXECUTIONS_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "llvm/IR/Module.h"

namespace hone::codegen {

// How often the code of one function runs in one run of the kernel.
struct Executions {
  std::map<std::string, int64_t> blocks;  // by the block's name in LLVM IR; 0 is left out
  // The share of its iterations that the busiest thread runs; 1 unless it is the body of a parallel
  // loop.
  double busiest_share = 1;
};

// Counts the executions of all blocks that `main` reaches when the kernel runs once, by function.
// Keeps only the instructions on which branches depend, adds counters, and runs that for this
// machine's CPU, whatever the module is for: no buffer is read or written. Most loops of known
// length are replaced by their length, so this takes milliseconds. Names the blocks that have no
// name. `arguments`: of the program; `cores`: that share the iterations of parallel loops.
// A branch with weights (MathBuilder::IfSmall) goes the likely way.
// Unimplemented: another branch depends on the contents of a buffer. Internal: LLVM cannot compile
// the branches for this machine.
absl::StatusOr<std::map<std::string, Executions>> CountExecutions(llvm::Module& module,
                                                                  const std::string& main,
                                                                  int arguments, int cores);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_EXECUTIONS_H_
