#ifndef HONE_WORKER_CODEGEN_COMPILE_H_
#define HONE_WORKER_CODEGEN_COMPILE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/lower/lowered.h"
#include "common/target/target.h"

namespace hone::codegen {

// Raised when the same program comes to give other code: stored records then say what they were
// measured with.
inline constexpr int kCodegenVersion = 7;

// More is refused before LLVM's code generator begins, whose time grows with the square of it: a
// candidate that unrolls too much is invalid within a second. (The largest kernel of
// tests/bench/traces has 30,000 instructions.)
inline constexpr int64_t kMaxInstructions =
    1 << 16;                                      // after optimization, in registers of the target
inline constexpr int64_t kMaxStatements = 16384;  // stores, when all static loops are unrolled
inline constexpr int64_t kMaxOperations = 1 << 20;  // in the expressions of these statements

struct CompileOptions {
  bool keep_ir = false;        // also give LLVM's text, after optimization
  bool keep_assembly = false;  // also give assembly (costs a second code generation)
};

struct CompiledObject {
  std::string object;  // an ELF object file with the symbols of common/target/kernel_abi.h
  std::string ir;
  std::string assembly;
  int64_t code_bytes = 0;  // of the text section
};

// Generates machine code for a lowered program. One call at a time per thread; calls of several
// threads are independent. InvalidArgument: the unrolled code exceeds a limit above, the target is
// unknown to LLVM, or its CPU has a feature that the guard (cpu_guard.h) cannot ask for.
// Unimplemented: an operation or loop kind that has no CPU code. Internal: LLVM refuses its input
// (a bug, with its message).
absl::StatusOr<CompiledObject> Compile(const lower::LoweredProgram& program,
                                       const target::Target& target,
                                       const CompileOptions& options = {});

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_COMPILE_H_
