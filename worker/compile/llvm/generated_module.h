#ifndef HONE_WORKER_COMPILE_LLVM_GENERATED_MODULE_H_
#define HONE_WORKER_COMPILE_LLVM_GENERATED_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"
#include "worker/compile/llvm/machine.h"
#include "worker/compile/lower/lowered.h"

namespace hone::codegen {

// The module of a program, optimized and arranged: what LLVM's code generator gets.
struct GeneratedModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;
  Passes passes;
};

// Errors are those of Compile.
absl::StatusOr<GeneratedModule> GenerateModule(const lower::LoweredProgram& program,
                                               const target::Target& target);

// Sets the options of LLVM's code generator. They are global, and LLD resets them, so they are set
// before each use.
void SetOptions(const Passes& passes);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_GENERATED_MODULE_H_
