#ifndef HONE_WORKER_CODEGEN_CPU_GUARD_H_
#define HONE_WORKER_CODEGEN_CPU_GUARD_H_

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"

namespace hone::codegen {

// Emits `i1 hone_cpu_guard()`. It returns whether the current CPU has every feature that
// `subtarget` has enabled and that code may use, and whether the operating system saves the
// registers. It checks once and caches the answer, because CPUID traps to the hypervisor and costs
// microseconds. The guard itself runs on any CPU of the architecture. It returns true on
// architectures other than x86_64. InvalidArgument: the subtarget has a feature for which no check
// is known.
absl::StatusOr<llvm::Function*> EmitCpuGuard(llvm::Module& module,
                                             const llvm::MCSubtargetInfo& subtarget,
                                             const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_CPU_GUARD_H_
