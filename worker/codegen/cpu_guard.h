#ifndef HONE_WORKER_CODEGEN_CPU_GUARD_H_
#define HONE_WORKER_CODEGEN_CPU_GUARD_H_

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"

namespace hone::codegen {

// Emits `i1 hone_cpu_guard()`: whether the CPU that runs it has every feature that `subtarget` has
// switched on and whose instructions code may contain, and the operating system saves the
// registers. It asks once and remembers the answer (CPUID leaves a virtual machine and costs
// microseconds), and is itself code for any CPU of the architecture. Of other architectures than
// x86_64 it is true. InvalidArgument: the subtarget has a feature of which it is not known how to
// ask a CPU for it.
absl::StatusOr<llvm::Function*> EmitCpuGuard(llvm::Module& module,
                                             const llvm::MCSubtargetInfo& subtarget,
                                             const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_CPU_GUARD_H_
