#include "worker/compile/llvm/cpu_guard.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/target/x86_features.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"

namespace hone::codegen {
namespace {

using llvm::Value;

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

// Features that kernels need not check.
constexpr absl::string_view kUnchecked =
    // Every CPU of the architecture has these.
    "64bit 64bit-mode cmov cx8 fxsr mmx nopl sse sse2 x87 "
    // Instructions that LLVM emits only for intrinsics or assembly, which kernels do not use.
    // Hypervisors hide many of them, so requiring them would refuse CPUs that can run the code.
    "adx aes avx512vp2intersect cldemote clflushopt clwb clzero crc32 enqcmd fsgsbase hreset "
    "invpcid kl lwp movdir64b movdiri mwaitx pclmul pconfig pku prefetchi prfchw ptwrite rdpid "
    "rdpru rdrnd rdseed serialize sha sha512 shstk sm3 sm4 tsxldtrk uintr usermsr vaes vpclmulqdq "
    "waitpkg wbnoinvd widekl xsave xsavec xsaveopt xsaves "
    // Tuning flags: code that depends on them runs on every CPU. (evex512 is the width of avx512f;
    // ermsb and fsrm are speeds of an old instruction.)
    "allow-light-256-bit branch-hint branchfusion ermsb evex512 false-deps-getmant "
    "false-deps-lzcnt-tzcnt false-deps-mulc false-deps-mullq false-deps-perm false-deps-popcnt "
    "false-deps-range fast-11bytenop fast-15bytenop fast-7bytenop fast-bextr fast-dpwssd "
    "fast-gather fast-hops fast-imm16 fast-lzcnt fast-movbe fast-scalar-fsqrt "
    "fast-scalar-shift-masks fast-shld-rotate fast-variable-crosslane-shuffle "
    "fast-variable-perlane-shuffle fast-vector-fsqrt fast-vector-shift-masks "
    "faster-shift-than-shuffle fsrm idivl-to-divb idivq-to-divl lea-sp lea-uses-ag macrofusion "
    "no-bypass-delay no-bypass-delay-blend no-bypass-delay-mov no-bypass-delay-shuffle "
    "pad-short-functions prefer-128-bit prefer-256-bit prefer-mask-registers "
    "prefer-movmsk-over-vtest prefer-no-gather prefer-no-scatter sbb-dep-breaking slow-3ops-lea "
    "slow-incdec slow-lea slow-pmaddwd slow-pmulld slow-shld slow-two-mem-ops "
    "slow-unaligned-mem-16 slow-unaligned-mem-32 tuning-fast-imm-vector-shift "
    "use-glm-div-sqrt-costs use-slm-arith-costs vzeroupper";

bool IsUnchecked(absl::string_view feature) {
  static const auto* const features =
      new absl::flat_hash_set<absl::string_view>(absl::StrSplit(kUnchecked, ' '));
  return features->contains(feature);
}

// Loads a tile; only code with AMX instructions calls it.
constexpr char kTileLoad[] = "llvm.x86.tileloadd64.internal";

// The bits of CPUID that must be set, by leaf, sub-leaf and register, and the bits of XCR0.
struct Questions {
  std::map<std::tuple<uint32_t, uint32_t, target::CpuidRegister>, uint32_t> bits;
  uint32_t saved = 0;
};

// Whether the target's text names instructions on tiles, which need the feature amx-tile.
bool NamesTileInstructions(const target::Target& target) {
  return std::ranges::any_of(target.features, [](const std::string& name) {
    const target::X86Feature* const feature = target::FindX86Feature(name);
    return feature != nullptr && feature->saved == target::kSavesAmx;
  });
}

absl::StatusOr<Questions> QuestionsOf(const llvm::MCSubtargetInfo& subtarget,
                                      const target::Target& target) {
  Questions questions;
  for (const llvm::SubtargetFeatureKV& on : subtarget.getAllProcessorFeatures()) {
    if (!subtarget.getFeatureBits().test(on.Value)) continue;
    const absl::string_view name = on.Key;
    if (IsUnchecked(name)) continue;
    const target::X86Feature* feature = target::FindX86Feature(name);
    if (feature == nullptr) {
      return absl::InvalidArgumentError(
          absl::StrCat("cpu=", target.cpu, " of the target has the feature '", name,
                       "' (LLVM), and it is not known how to ask a CPU for it; name a CPU without "
                       "it, or a level such as x86-64-v3"));
    }
    // LLVM uses tiles only through the instructions that the target's text names.
    if (feature->saved == target::kSavesAmx && !target.HasFeature(name) &&
        !(name == "amx-tile" && NamesTileInstructions(target)))
      continue;
    questions.bits[{feature->leaf, feature->subleaf, feature->in}] |= uint32_t{1} << feature->bit;
    questions.saved |= feature->saved;
  }
  return questions;
}

class Guard {
 public:
  explicit Guard(llvm::Module& module)
      : module_(module),
        b_(module.getContext()),
        function_(llvm::Function::Create(llvm::FunctionType::get(b_.getInt1Ty(), false),
                                         llvm::GlobalValue::InternalLinkage, "hone_cpu_guard",
                                         module)) {}

  llvm::Function* Emit(const Questions& questions) {
    auto* i32 = b_.getInt32Ty();
    auto* known = new llvm::GlobalVariable(module_, i32, false, llvm::GlobalValue::InternalLinkage,
                                           b_.getInt32(kUnknown), "hone_cpu_state");
    b_.SetInsertPoint(Block("entry"));
    auto* ask = Block("ask");
    auto* done = Block("done");
    auto* load = b_.CreateLoad(i32, known);
    load->setAtomic(llvm::AtomicOrdering::Monotonic);
    b_.CreateCondBr(b_.CreateICmpEQ(load, b_.getInt32(kUnknown)), ask, done);
    b_.SetInsertPoint(done);
    b_.CreateRet(b_.CreateICmpEQ(load, b_.getInt32(kRuns)));

    no_ = Block("no");
    b_.SetInsertPoint(ask);
    Ask(questions);
    Answer(known, kRuns);
    b_.SetInsertPoint(no_);
    Answer(known, kLacks);
    return function_;
  }

 private:
  static constexpr uint32_t kUnknown = 0, kRuns = 1, kLacks = 2;

  llvm::BasicBlock* Block(const char* name) {
    return llvm::BasicBlock::Create(module_.getContext(), name, function_);
  }

  void Answer(llvm::GlobalVariable* known, uint32_t state) {
    b_.CreateStore(b_.getInt32(state), known)->setAtomic(llvm::AtomicOrdering::Monotonic);
    b_.CreateRet(b_.getInt1(state == kRuns));
  }

  // Continues only if `value` has all of the bits.
  void Need(Value* value, uint32_t bits) {
    auto* next = Block("next");
    b_.CreateCondBr(b_.CreateICmpEQ(b_.CreateAnd(value, bits), b_.getInt32(bits)), next, no_);
    b_.SetInsertPoint(next);
  }

  Value* Cpuid(uint32_t leaf, uint32_t subleaf) {
    auto* i32 = b_.getInt32Ty();
    auto* type =
        llvm::FunctionType::get(llvm::StructType::get(i32, i32, i32, i32), {i32, i32}, false);
    auto* cpuid = llvm::InlineAsm::get(
        type, "cpuid", "={eax},={ebx},={ecx},={edx},{eax},{ecx},~{dirflag},~{fpsr},~{flags}", true);
    return b_.CreateCall(cpuid, {b_.getInt32(leaf), b_.getInt32(subleaf)});
  }

  Value* Xcr0() {
    auto* i32 = b_.getInt32Ty();
    auto* type = llvm::FunctionType::get(llvm::StructType::get(i32, i32), {i32}, false);
    auto* xgetbv = llvm::InlineAsm::get(type, "xgetbv",
                                        "={eax},={edx},{ecx},~{dirflag},~{fpsr},~{flags}", true);
    return b_.CreateExtractValue(b_.CreateCall(xgetbv, {b_.getInt32(0)}), 0);
  }

  void Ask(const Questions& questions) {
    constexpr uint32_t kOsxsave = uint32_t{1} << 27;
    if (questions.saved != 0) {  // the system enables XGETBV, which reports the saved registers
      Need(b_.CreateExtractValue(Cpuid(1, 0), 2), kOsxsave);
      Need(Xcr0(), questions.saved);
    }
    std::pair<uint32_t, uint32_t> asked = {0, 0};
    Value* registers = nullptr;
    for (const auto& [place, bits] : questions.bits) {
      const auto& [leaf, subleaf, in] = place;
      if (registers == nullptr || asked != std::pair(leaf, subleaf)) {
        // For a leaf beyond the highest of its range, a CPU returns the bits of another leaf.
        if (registers == nullptr || asked.first != leaf) NeedLeaf(leaf);
        registers = Cpuid(leaf, subleaf);
        asked = {leaf, subleaf};
      }
      Need(b_.CreateExtractValue(registers, static_cast<unsigned>(in)), bits);
    }
    if (module_.getFunction(kTileLoad) != nullptr) NeedTilePermission();
  }

  // Linux gives a process the tile registers on request only; without it, their first use is an
  // illegal instruction.
  void NeedTilePermission() {
    constexpr uint64_t kArchPrctl = 158, kRequestPermission = 0x1023, kTileData = 18;
    auto* i64 = b_.getInt64Ty();
    auto* syscall = llvm::InlineAsm::get(
        llvm::FunctionType::get(i64, {i64, i64, i64}, false), "syscall",
        "={rax},{rax},{rdi},{rsi},~{rcx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}", true);
    Value* result = b_.CreateCall(
        syscall,
        {b_.getInt64(kArchPrctl), b_.getInt64(kRequestPermission), b_.getInt64(kTileData)});
    auto* next = Block("next");
    b_.CreateCondBr(b_.CreateICmpEQ(result, b_.getInt64(0)), next, no_);
    b_.SetInsertPoint(next);
  }

  void NeedLeaf(uint32_t leaf) {
    constexpr uint32_t kExtended = 0x80000000;
    auto* next = Block("next");
    Value* highest = b_.CreateExtractValue(Cpuid(leaf & kExtended, 0), 0);
    b_.CreateCondBr(b_.CreateICmpUGE(highest, b_.getInt32(leaf)), next, no_);
    b_.SetInsertPoint(next);
  }

  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_;
  llvm::BasicBlock* no_ = nullptr;
};

}  // namespace

absl::StatusOr<HwCaps> HwCapsIn(const llvm::MCSubtargetInfo& subtarget,
                                const target::Target& target,
                                absl::Span<const HwCapFeature> features,
                                absl::string_view unchecked) {
  HwCaps caps;
  const std::vector<absl::string_view> ignored = absl::StrSplit(unchecked, ' ');
  for (const llvm::SubtargetFeatureKV& on : subtarget.getAllProcessorFeatures()) {
    const absl::string_view name = on.Key;
    if (!subtarget.getFeatureBits().test(on.Value) || std::ranges::count(ignored, name) > 0)
      continue;
    const auto feature = std::ranges::find(features, name, &HwCapFeature::name);
    if (feature == features.end()) {
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

llvm::Function* EmitHwCapGuard(llvm::Module& module, const HwCaps& caps, int sve_bytes) {
  llvm::IRBuilder<> b(module.getContext());
  auto* const word = module.getDataLayout().getIntPtrType(module.getContext());
  auto* const i32 = b.getInt32Ty();
  auto* const guard =
      llvm::Function::Create(llvm::FunctionType::get(b.getInt1Ty(), false),
                             llvm::GlobalValue::InternalLinkage, "hone_cpu_guard", module);
  guard->addFnAttr("target-cpu", "generic");
  guard->addFnAttr("target-features", "");
  b.SetInsertPoint(llvm::BasicBlock::Create(module.getContext(), "entry", guard));
  const auto getauxval =
      module.getOrInsertFunction("getauxval", llvm::FunctionType::get(word, {word}, false));
  constexpr uint64_t kAtHwcap = 16, kAtHwcap2 = 26;
  Value* holds = b.getTrue();
  const auto require = [&](uint64_t entry, uint64_t bits) {
    if (bits == 0) return;
    Value* const has = b.CreateCall(getauxval, {llvm::ConstantInt::get(word, entry)});
    Value* const wanted = llvm::ConstantInt::get(word, bits);
    holds = b.CreateAnd(holds, b.CreateICmpEQ(b.CreateAnd(has, wanted), wanted));
  };
  require(kAtHwcap, caps.hwcap);
  require(kAtHwcap2, caps.hwcap2);
  if (sve_bytes != 0) {
    constexpr int kPrSveGetVl = 51, kPrSveVlLenMask = 0xffff;
    const auto prctl =
        module.getOrInsertFunction("prctl", llvm::FunctionType::get(i32, {i32}, true));
    Value* const length = b.CreateCall(prctl, {b.getInt32(kPrSveGetVl)});
    Value* const same =
        b.CreateICmpEQ(b.CreateAnd(length, b.getInt32(kPrSveVlLenMask)), b.getInt32(sve_bytes));
    // The system call returns a negative number on errors.
    holds = b.CreateAnd(holds, b.CreateAnd(b.CreateICmpSGT(length, b.getInt32(0)), same));
  }
  b.CreateRet(holds);
  return guard;
}

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

absl::StatusOr<llvm::Function*> EmitX86CpuGuard(llvm::Module& module,
                                                const llvm::MCSubtargetInfo& subtarget,
                                                const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const Questions questions, QuestionsOf(subtarget, target));
  llvm::Function* guard = Guard(module).Emit(questions);
  guard->addFnAttr("target-cpu", "x86-64");
  guard->addFnAttr("target-features", "");
  return guard;
}

}  // namespace hone::codegen
