#include "worker/codegen/llvm/aarch64_cpu_guard.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {
namespace {

using llvm::Value;

constexpr uint64_t Bit(int number) { return uint64_t{1} << number; }

// Features with instructions that LLVM may emit. The numbers of the bits are those of Linux's
// asm/hwcap.h for AArch64.
struct Feature {
  absl::string_view name;  // LLVM's
  HwCaps caps;
};
constexpr Feature kFeatures[] = {
    {"altnzcv", {0, Bit(7)}},             // FLAGM2
    {"bf16", {0, Bit(14)}},               // BF16
    {"complxnum", {Bit(14), 0}},          // FCMA
    {"crc", {Bit(7), 0}},                 // CRC32
    {"dotprod", {Bit(20), 0}},            // ASIMDDP
    {"flagm", {Bit(27), 0}},              // FLAGM
    {"fp-armv8", {Bit(0), 0}},            // FP
    {"fp16fml", {Bit(23), 0}},            // ASIMDFHM
    {"fptoint", {0, Bit(8)}},             // FRINT
    {"fullfp16", {Bit(9) | Bit(10), 0}},  // FPHP, ASIMDHP
    {"i8mm", {0, Bit(13)}},               // I8MM
    {"jsconv", {Bit(13), 0}},             // JSCVT
    {"lse", {Bit(8), 0}},                 // ATOMICS
    {"neon", {Bit(1), 0}},                // ASIMD
    {"rcpc", {Bit(15), 0}},               // LRCPC
    {"rcpc-immo", {Bit(26), 0}},          // ILRCPC
    {"rdm", {Bit(12), 0}},                // ASIMDRDM
    {"sve", {Bit(22), 0}},                // SVE
    {"sve2", {Bit(22), Bit(1)}},          // SVE, SVE2
    {"sve2-bitperm", {Bit(22), Bit(4)}},  // SVE, SVEBITPERM
};

// Features that kernels need not check.
constexpr absl::string_view kUnchecked =
    // Versions of the architecture, whose instructions have names of their own.
    "v8a v8.1a v8.2a v8.3a v8.4a v8.5a v8.6a v8.7a v8.8a v8.9a v9a v9.1a v9.2a v9.3a v9.4a "
    // What only systems use, or instructions that LLVM emits only for intrinsics, assembly and
    // atomic operations of 128 bits.
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

bool IsUnchecked(absl::string_view feature) {
  static const auto* const features =
      new absl::flat_hash_set<absl::string_view>(absl::StrSplit(kUnchecked, ' '));
  return features->contains(feature);
}

}  // namespace

absl::StatusOr<HwCaps> HwCapsOf(const llvm::MCSubtargetInfo& subtarget,
                                const target::Target& target) {
  HwCaps caps;
  for (const llvm::SubtargetFeatureKV& on : subtarget.getAllProcessorFeatures()) {
    const absl::string_view name = on.Key;
    if (!subtarget.getFeatureBits().test(on.Value) || IsUnchecked(name)) continue;
    const auto* const feature =
        std::find_if(std::begin(kFeatures), std::end(kFeatures),
                     [&](const Feature& known) { return known.name == name; });
    if (feature == std::end(kFeatures)) {
      return absl::InvalidArgumentError(
          absl::StrCat("cpu=", target.cpu, " of the target has the feature '", name,
                       "' (LLVM), and it is not known how to ask a CPU for it; name a CPU without "
                       "it, or generic"));
    }
    caps.hwcap |= feature->caps.hwcap;
    caps.hwcap2 |= feature->caps.hwcap2;
  }
  return caps;
}

absl::StatusOr<llvm::Function*> EmitAArch64CpuGuard(llvm::Module& module,
                                                    const llvm::MCSubtargetInfo& subtarget,
                                                    const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const HwCaps caps, HwCapsOf(subtarget, target));
  llvm::IRBuilder<> b(module.getContext());
  auto* const i64 = b.getInt64Ty();
  auto* const guard =
      llvm::Function::Create(llvm::FunctionType::get(b.getInt1Ty(), false),
                             llvm::GlobalValue::InternalLinkage, "hone_cpu_guard", module);
  guard->addFnAttr("target-cpu", "generic");
  guard->addFnAttr("target-features", "");
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", guard));
  const auto getauxval =
      module.getOrInsertFunction("getauxval", llvm::FunctionType::get(i64, {i64}, false));
  constexpr uint64_t kAtHwcap = 16, kAtHwcap2 = 26;
  const auto has = [&](uint64_t entry, uint64_t bits) -> Value* {
    if (bits == 0) return b.getTrue();
    Value* const word = b.CreateCall(getauxval, {b.getInt64(entry)});
    return b.CreateICmpEQ(b.CreateAnd(word, bits), b.getInt64(bits));
  };
  Value* const first = has(kAtHwcap, caps.hwcap);
  b.CreateRet(b.CreateAnd(first, has(kAtHwcap2, caps.hwcap2)));
  return guard;
}

}  // namespace hone::codegen
