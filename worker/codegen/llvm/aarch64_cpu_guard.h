#ifndef HONE_WORKER_CODEGEN_LLVM_AARCH64_CPU_GUARD_H_
#define HONE_WORKER_CODEGEN_LLVM_AARCH64_CPU_GUARD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "common/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"

namespace hone::codegen {

// The bits that Linux sets in the auxiliary vector (AT_HWCAP, AT_HWCAP2) of a CPU.
struct HwCaps {
  uint64_t hwcap = 0;
  uint64_t hwcap2 = 0;
  friend bool operator==(const HwCaps&, const HwCaps&) = default;
};

// The bits of all features that code for the subtarget may use. InvalidArgument: it has a feature
// for which no bit is known.
absl::StatusOr<HwCaps> HwCapsOf(const llvm::MCSubtargetInfo& subtarget,
                                const target::Target& target);

// Machine::EmitCpuGuard of AArch64 under Linux. The guard calls getauxval.
absl::StatusOr<llvm::Function*> EmitAArch64CpuGuard(llvm::Module& module,
                                                    const llvm::MCSubtargetInfo& subtarget,
                                                    const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_LLVM_AARCH64_CPU_GUARD_H_
