#ifndef HONE_WORKER_COMPILE_LLVM_ARMV7_CPU_GUARD_H_
#define HONE_WORKER_COMPILE_LLVM_ARMV7_CPU_GUARD_H_

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"

namespace hone::codegen {

// Machine::EmitCpuGuard of ARMv7 under Linux, and of newer CPUs that run its code. InvalidArgument:
// the subtarget has a feature for which no bit is known.
absl::StatusOr<llvm::Function*> EmitArmv7CpuGuard(llvm::Module& module,
                                                  const llvm::MCSubtargetInfo& subtarget,
                                                  const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_ARMV7_CPU_GUARD_H_
