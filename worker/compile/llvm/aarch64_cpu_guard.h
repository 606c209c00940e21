#ifndef HONE_WORKER_COMPILE_LLVM_AARCH64_CPU_GUARD_H_
#define HONE_WORKER_COMPILE_LLVM_AARCH64_CPU_GUARD_H_

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "worker/compile/llvm/hwcap_guard.h"

namespace hone::codegen {

// Returns the bits of all features that code for the subtarget may use. InvalidArgument: it has a
// feature for which no bit is known.
absl::StatusOr<HwCaps> HwCapsOf(const llvm::MCSubtargetInfo& subtarget,
                                const target::Target& target);

// Machine::EmitCpuGuard of AArch64 under Linux. For a target with SVE, vectors must have exactly
// its length.
absl::StatusOr<llvm::Function*> EmitAArch64CpuGuard(llvm::Module& module,
                                                    const llvm::MCSubtargetInfo& subtarget,
                                                    const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_AARCH64_CPU_GUARD_H_
