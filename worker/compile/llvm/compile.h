#ifndef HONE_WORKER_COMPILE_LLVM_COMPILE_H_
#define HONE_WORKER_COMPILE_LLVM_COMPILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// Larger programs are refused before LLVM's code generator runs, because its time grows
// quadratically. A candidate that unrolls too much is invalid within a second. The largest kernel
// of tests/bench/traces has 30,000 instructions.
inline constexpr int64_t kMaxInstructions = 1 << 16;  // after optimization
inline constexpr int64_t kMaxStatements = 16384;      // stores, with all static loops unrolled
inline constexpr int64_t kMaxOperations = 1 << 20;    // in the expressions of these statements

struct CompileOptions {
  bool keep_ir = false;        // also return LLVM IR, after optimization
  bool keep_assembly = false;  // also return assembly (costs a second code generation)
};

struct CompiledObject {
  std::string object;    // an ELF object file with the symbols of common/target/kernel_abi.h
  std::string ir;        // if asked for
  std::string assembly;  // if asked for
};

// Generates machine code for a lowered program. One thread at a time, because LLVM's options are
// those of the process. InvalidArgument: the unrolled code exceeds a limit above, LLVM does not
// know the target, or its CPU has a feature that the guard (Machine::EmitCpuGuard) cannot check.
// Unimplemented: the operation or loop kind has no CPU code. Internal: LLVM refuses its input (a
// bug; the message is LLVM's).
absl::StatusOr<CompiledObject> Compile(const lower::LoweredProgram& program,
                                       const target::Target& target,
                                       const CompileOptions& options = {});

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_COMPILE_H_
