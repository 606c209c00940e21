#include "worker/compile/llvm/aarch64_cpu_guard.h"

#include "common/base/status_macros.h"

namespace hone::codegen {
namespace {

// The numbers of the bits are those of Linux's asm/hwcap.h for AArch64.
constexpr HwCapFeature kAArch64Features[] = {
    {"altnzcv", {0, HwCapBit(7)}},                  // FLAGM2
    {"bf16", {0, HwCapBit(14)}},                    // BF16
    {"complxnum", {HwCapBit(14), 0}},               // FCMA
    {"crc", {HwCapBit(7), 0}},                      // CRC32
    {"dotprod", {HwCapBit(20), 0}},                 // ASIMDDP
    {"flagm", {HwCapBit(27), 0}},                   // FLAGM
    {"fp-armv8", {HwCapBit(0), 0}},                 // FP
    {"fp16fml", {HwCapBit(23), 0}},                 // ASIMDFHM
    {"fptoint", {0, HwCapBit(8)}},                  // FRINT
    {"fullfp16", {HwCapBit(9) | HwCapBit(10), 0}},  // FPHP, ASIMDHP
    {"i8mm", {0, HwCapBit(13)}},                    // I8MM
    {"jsconv", {HwCapBit(13), 0}},                  // JSCVT
    {"lse", {HwCapBit(8), 0}},                      // ATOMICS
    {"neon", {HwCapBit(1), 0}},                     // ASIMD
    {"rcpc", {HwCapBit(15), 0}},                    // LRCPC
    {"rcpc-immo", {HwCapBit(26), 0}},               // ILRCPC
    {"rdm", {HwCapBit(12), 0}},                     // ASIMDRDM
    {"sve", {HwCapBit(22), 0}},                     // SVE
    {"sve2", {HwCapBit(22), HwCapBit(1)}},          // SVE, SVE2
    {"sve2-bitperm", {HwCapBit(22), HwCapBit(4)}},  // SVE, SVEBITPERM
};

// Features that kernels need not check.
constexpr absl::string_view kAArch64Unchecked =
    // Versions of the architecture. Their instructions are listed as separate features.
    "v8a v8.1a v8.2a v8.3a v8.4a v8.5a v8.6a v8.7a v8.8a v8.9a v9a v9.1a v9.2a v9.3a v9.4a "
    // Features for operating systems, and instructions that LLVM emits only for intrinsics,
    // assembly and atomic operations of 128 bits.
    "CONTEXTIDREL2 aes am amvs bti ccdp ccidx ccpp dit ecv el2vmsa el3 ete fgt lor lse2 mpam mte "
    "nv "
    "pan pan-rwv pauth perfmon predres rand ras sb sel2 sha2 sha3 sm4 spe specrestrict ssbs "
    "sve2-aes sve2-sha3 sve2-sm4 tlb-rmi tracev8.4 trbe uaops vh "
    // Names of cores and tuning flags: code that depends on them runs on every CPU.
    "a35 a510 a53 a55 a57 a65 a64fx a710 a72 a73 a75 a76 a77 a78 a78c addr-lsl-slow-14 "
    "aggressive-fma alternate-sextload-cvt-f32-pattern alu-lsl-fast ampere1 ampere1a apple-a14 "
    "apple-a15 apple-a16 arith-bcc-fusion arith-cbz-fusion balance-fp-ops carmel cmp-bcc-fusion "
    "cortex-a78 cortex-r82 cortex-x1 cortex-x2 cortex-x3 disable-latency-sched-heuristic "
    "enable-select-opt fuse-address fuse-adrp-add fuse-aes fuse-arith-logic fuse-crypto-eor "
    "fuse-csel fuse-literals ldp-aligned-only neoverse512tvb neoversee1 neoversen1 neoversen2 "
    "neoversev1 neoversev2 no-sve-fp-ld1r predictable-select-expensive stp-aligned-only "
    "store-pair-suppress use-fixed-over-scalable-if-equal-cost use-postra-scheduler "
    "use-scalar-inc-vl zcm zcz zcz-gp";

}  // namespace

absl::StatusOr<HwCaps> HwCapsOf(const llvm::MCSubtargetInfo& subtarget,
                                const target::Target& target) {
  return HwCapsIn(subtarget, target, kAArch64Features, kAArch64Unchecked);
}

absl::StatusOr<llvm::Function*> EmitAArch64CpuGuard(llvm::Module& module,
                                                    const llvm::MCSubtargetInfo& subtarget,
                                                    const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const HwCaps caps, HwCapsOf(subtarget, target));
  return EmitHwCapGuard(module, caps, target.HasFeature("sve") ? target.vector_bits / 8 : 0);
}

}  // namespace hone::codegen
