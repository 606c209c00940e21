#include "worker/compile/llvm/armv7_cpu_guard.h"
#include "worker/compile/llvm/inline_operations.h"
#include "worker/compile/llvm/machine.h"

namespace hone::codegen {
namespace {

// On these CPUs, NEON arithmetic in f32 treats denormal numbers as 0; f64 and scalars do not.
class Armv7 final : public Machine {
 public:
  explicit Armv7(const target::Target& target) : Machine(target) {}

  Passes Arrange(llvm::Module&) const override { return {.schedule = true}; }
  bool ConvertsF16() const override { return target_.HasFeature("vfp4"); }
  bool DividesI64() const override { return false; }
  void ReplaceCalls(llvm::Module& module, const llvm::MCSubtargetInfo& subtarget) const override {
    InlineOperations(module, subtarget.checkFeatures("+hwdiv-arm"));
  }

  absl::StatusOr<llvm::Function*> EmitCpuGuard(
      llvm::Module& module, const llvm::MCSubtargetInfo& subtarget) const override {
    return EmitArmv7CpuGuard(module, subtarget, target_);
  }
};

}  // namespace

std::unique_ptr<Machine> MakeArmv7(const target::Target& target) {
  return std::make_unique<Armv7>(target);
}

}  // namespace hone::codegen
