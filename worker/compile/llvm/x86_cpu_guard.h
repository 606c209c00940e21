#ifndef HONE_WORKER_COMPILE_LLVM_X86_CPU_GUARD_H_
#define HONE_WORKER_COMPILE_LLVM_X86_CPU_GUARD_H_

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"

namespace hone::codegen {

// Machine::EmitCpuGuard of x86-64. The guard checks once and caches the answer, because CPUID traps
// to the hypervisor and costs microseconds.
absl::StatusOr<llvm::Function*> EmitX86CpuGuard(llvm::Module& module,
                                                const llvm::MCSubtargetInfo& subtarget,
                                                const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_X86_CPU_GUARD_H_
