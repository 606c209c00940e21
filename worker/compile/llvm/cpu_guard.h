#ifndef HONE_WORKER_COMPILE_LLVM_CPU_GUARD_H_
#define HONE_WORKER_COMPILE_LLVM_CPU_GUARD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/target/target.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"

namespace hone::codegen {

// The bits that Linux sets in the auxiliary vector (AT_HWCAP, AT_HWCAP2) of an Arm CPU.
struct HwCaps {
  uint64_t hwcap = 0;
  uint64_t hwcap2 = 0;
  friend bool operator==(const HwCaps&, const HwCaps&) = default;
};

constexpr uint64_t HwCapBit(int number) { return uint64_t{1} << number; }

// A feature with instructions that LLVM may emit, by LLVM's name, and its bits.
struct HwCapFeature {
  absl::string_view name;
  HwCaps caps;
};

// Returns the bits of all features that code for the subtarget may use. `unchecked` names the
// features that kernels need not check, separated by blanks. InvalidArgument: the subtarget has a
// feature that is in neither list.
absl::StatusOr<HwCaps> HwCapsIn(const llvm::MCSubtargetInfo& subtarget,
                                const target::Target& target,
                                absl::Span<const HwCapFeature> features,
                                absl::string_view unchecked);

// Machine::EmitCpuGuard of Arm CPUs under Linux: calls getauxval for the bits. If `sve_bytes` is
// not 0, it also calls prctl, because vectors of SVE must have exactly this length.
llvm::Function* EmitHwCapGuard(llvm::Module& module, const HwCaps& caps, int sve_bytes);

// Returns the bits of all features that code for the subtarget may use. InvalidArgument: it has a
// feature for which no bit is known.
absl::StatusOr<HwCaps> HwCapsOf(const llvm::MCSubtargetInfo& subtarget,
                                const target::Target& target);

// Machine::EmitCpuGuard of AArch64 under Linux. For a target with SVE, vectors must have exactly
// its length.
absl::StatusOr<llvm::Function*> EmitAArch64CpuGuard(llvm::Module& module,
                                                    const llvm::MCSubtargetInfo& subtarget,
                                                    const target::Target& target);

// Machine::EmitCpuGuard of x86-64. The guard checks once and caches the answer, because CPUID traps
// to the hypervisor and costs microseconds.
absl::StatusOr<llvm::Function*> EmitX86CpuGuard(llvm::Module& module,
                                                const llvm::MCSubtargetInfo& subtarget,
                                                const target::Target& target);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_CPU_GUARD_H_
