#include "worker/compile/llvm/x86_cpu_guard.h"

#include <map>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/target/x86_features.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"

namespace hone::codegen {

using llvm::Value;

namespace {

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
    if (feature->saved == target::kSavesAmx && !target.HasFeature(name)) continue;
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
