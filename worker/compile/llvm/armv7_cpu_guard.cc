#include "worker/compile/llvm/armv7_cpu_guard.h"

#include "common/base/status_macros.h"
#include "worker/compile/llvm/hwcap_guard.h"

namespace hone::codegen {
namespace {

// The bit numbers are from Linux's asm/hwcap.h for 32-bit Arm.
constexpr HwCapFeature kArmv7Features[] = {
    {"crc", {0, HwCapBit(4)}},                       // CRC32
    {"d32", {HwCapBit(19), 0}},                      // VFPD32
    {"dotprod", {HwCapBit(24), 0}},                  // ASIMDDP
    {"fp16", {HwCapBit(16), 0}},                     // VFPv4 includes it
    {"fullfp16", {HwCapBit(22) | HwCapBit(23), 0}},  // FPHP, ASIMDHP
    {"hwdiv", {HwCapBit(18), 0}},                    // IDIVT
    {"hwdiv-arm", {HwCapBit(17), 0}},                // IDIVA
    {"neon", {HwCapBit(12), 0}},                     // NEON
    {"vfp2", {HwCapBit(6), 0}},                      // VFP
    {"vfp2sp", {HwCapBit(6), 0}},                    // VFP
    {"vfp3", {HwCapBit(13), 0}},                     // VFPv3
    {"vfp3d16", {HwCapBit(13), 0}},                  // VFPv3
    {"vfp3d16sp", {HwCapBit(13), 0}},                // VFPv3
    {"vfp3sp", {HwCapBit(13), 0}},                   // VFPv3
    {"vfp4", {HwCapBit(16), 0}},                     // VFPv4
    {"vfp4d16", {HwCapBit(16), 0}},                  // VFPv4
    {"vfp4d16sp", {HwCapBit(16), 0}},                // VFPv4
    {"vfp4sp", {HwCapBit(16), 0}},                   // VFPv4
};

// Features that kernels need not check.
constexpr absl::string_view kArmv7Unchecked =
    // Versions of the architecture: CPUs older than ARMv7 cannot run the guard either, and CPUs
    // with the FPU instructions of ARMv8 are recognized by CRC32, which is checked.
    "aclass armv7-a armv7ve armv8-a armv8.2-a v4t v5t v5te v6 v6k v6m v6t2 v7 v7clrex v8 v8.1a "
    "v8.2a v8m thumb2 dsp db fp64 fpregs fpregs16 fpregs64 fp-armv8 fp-armv8d16 fp-armv8d16sp "
    "fp-armv8sp "
    // Features for operating systems, and instructions that LLVM emits only for intrinsics,
    // assembly and atomic operations.
    "acquire-release aes crypto mp perfmon ras sb sha2 trustzone virtualization "
    // Names of cores and tuning flags: code that depends on them runs on every CPU.
    "a12 a15 a17 a5 a53 a55 a57 a7 a72 a73 a75 a76 a77 a78 a8 a9 avoid-movs-shop "
    "avoid-partial-cpsr check-vlrd-align cortex-a78 cortex-x1 expand-fp-mlx "
    "fix-cortex-a57-aes-1742098 fpao fuse-aes fuse-literals muxed-units neon-fpmovs "
    "neoverse-n1 nonpipelined-vfp prefer-vmovsr prof-unpr ret-addr-stack slow-fp-brcc "
    "slow-odd-reg slow-vdup32 slow-vgetlni32 slowfpvfmx slowfpvmlx splat-vfp-neon "
    "use-misched use-mipipeliner vldn-align vmlx-forwarding vmlx-hazards wide-stride-vfp zcz";

}  // namespace

absl::StatusOr<llvm::Function*> EmitArmv7CpuGuard(llvm::Module& module,
                                                  const llvm::MCSubtargetInfo& subtarget,
                                                  const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const HwCaps caps,
                        HwCapsIn(subtarget, target, kArmv7Features, kArmv7Unchecked));
  return EmitHwCapGuard(module, caps, /*sve_bytes=*/0);
}

}  // namespace hone::codegen
