#include "worker/codegen/llvm/aarch64_cpu_guard.h"
#include "worker/codegen/llvm/machine.h"

namespace hone::codegen {
namespace {

struct Dot {
  absl::string_view name;  // of the instruction in common/ir/intrinsic.h
  DotCode code;
};
constexpr Dot kDots[] = {
    {"sdot_4x4", {"llvm.aarch64.neon.sdot.v4i32.v16i8", ir::DType::kI8}},
    {"udot_4x4", {"llvm.aarch64.neon.udot.v4i32.v16i8", ir::DType::kI8}},
};

class AArch64 final : public Machine {
 public:
  explicit AArch64(const target::Target& target) : Machine(target) {}

  bool SchedulesInstructions() const override { return true; }
  bool ComputesF16() const override { return target_.HasFeature("fullfp16"); }

  absl::StatusOr<llvm::Function*> EmitCpuGuard(
      llvm::Module& module, const llvm::MCSubtargetInfo& subtarget) const override {
    return EmitAArch64CpuGuard(module, subtarget, target_);
  }

  // With the length of SVE's vectors known, LLVM uses them for vectors that NEON does not have, and
  // predicates for masks.
  void SetAttributes(llvm::Function& function) const override {
    if (!target_.HasFeature("sve")) return;
    const auto blocks = static_cast<unsigned>(target_.vector_bits / 128);
    function.addFnAttr(
        llvm::Attribute::getWithVScaleRangeArgs(function.getContext(), blocks, blocks));
  }

  absl::StatusOr<DotCode> DotOf(const ir::Intrinsic& intrinsic) const override {
    for (const Dot& dot : kDots) {
      if (dot.name == intrinsic.name) return dot.code;
    }
    return NoCodeError(intrinsic);
  }
};

}  // namespace

std::unique_ptr<Machine> MakeAArch64(const target::Target& target) {
  return std::make_unique<AArch64>(target);
}

}  // namespace hone::codegen
