#include "worker/compile/llvm/hwcap_guard.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "llvm/IR/DataLayout.h"
#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

using llvm::Value;

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

}  // namespace hone::codegen
