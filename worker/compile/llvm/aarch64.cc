#include <algorithm>

#include "absl/strings/str_cat.h"
#include "worker/compile/llvm/aarch64_cpu_guard.h"
#include "worker/compile/llvm/broadcast_loads.h"
#include "worker/compile/llvm/load_distance.h"
#include "worker/compile/llvm/machine.h"

namespace hone::codegen {
namespace {

struct Dot {
  absl::string_view name;  // of the instruction in common/ir/intrinsic.h
  DotCode code;
};
constexpr Dot kDots[] = {
    {"sdot_4x4", {"llvm.aarch64.neon.sdot.v4i32.v16i8", ir::DType::kI8}},
    {"udot_4x4", {"llvm.aarch64.neon.udot.v4i32.v16i8", ir::DType::kI8}},
    {"usdot_4x4", {"llvm.aarch64.neon.usdot.v4i32.v16i8", ir::DType::kI8}},
    {"bfdot_4x2", {"llvm.aarch64.neon.bfdot.v4f32.v8bf16", ir::DType::kBF16}},
    {"smmla_2x2x8", {"llvm.aarch64.neon.smmla.v4i32.v16i8", ir::DType::kI8}},
    {"ummla_2x2x8", {"llvm.aarch64.neon.ummla.v4i32.v16i8", ir::DType::kI8}},
    {"usmmla_2x2x8", {"llvm.aarch64.neon.usmmla.v4i32.v16i8", ir::DType::kI8}},
    {"bfmmla_2x2x4", {"llvm.aarch64.neon.bfmmla", ir::DType::kBF16}},
};

class AArch64 final : public Machine {
 public:
  explicit AArch64(const target::Target& target) : Machine(target) {}

  Passes Arrange(llvm::Module& module) const override {
    // Multiply-adds of SVE do not take an operand from a lane.
    constexpr unsigned kNeon = 4, kAny = 1024;
    JoinBroadcastLoads(module, target_.vector_bits == 128 ? kAny : kNeon, target_.vector_registers);
    if (!IsInOrder()) return {};
    if (!MoveLoadsAhead(module, target_.vector_registers, LoadsAlone())) return {.schedule = true};
    KeepOrder(module);
    return {.advance_pointers = true};
  }
  bool RoundsI64Twice() const override { return true; }
  // If they come from integers of 64 bits (combineI8TruncStore in LLVM 19).
  bool MisplacesThreeBytes() const override { return true; }
  bool ComputesF16() const override { return target_.HasFeature("fullfp16"); }

  absl::StatusOr<llvm::Function*> EmitCpuGuard(
      llvm::Module& module, const llvm::MCSubtargetInfo& subtarget) const override {
    return EmitAArch64CpuGuard(module, subtarget, target_);
  }

  // If the length of SVE's vectors is known, LLVM uses them for vectors longer than NEON's, and
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

 private:
  // "generic" counts as in-order, because out-of-order cores reorder instructions anyway.
  bool IsInOrder() const {
    constexpr absl::string_view kInOrder[] = {"cortex-a35",  "cortex-a53",  "cortex-a55",
                                              "cortex-a510", "cortex-a520", "generic"};
    return std::ranges::count(kInOrder, target_.cpu) > 0;
  }
  // Turns off what moves loads after the allocation of registers: a scheduler, and the pass that
  // makes pairs of loads.
  void KeepOrder(llvm::Module& module) const {
    std::string features = "-use-postra-scheduler,+slow-paired-128";
    for (const std::string& feature : target_.features) absl::StrAppend(&features, ",+", feature);
    for (llvm::Function& function : module) {
      if (function.getFnAttribute("target-cpu").getValueAsString() == target_.cpu)
        function.addFnAttr("target-features", features);
    }
  }
  // Whether loads of 128 bits do not issue in the cycle of a multiply-add.
  bool LoadsAlone() const { return target_.cpu == "cortex-a35" || target_.cpu == "cortex-a53"; }
};

}  // namespace

std::unique_ptr<Machine> MakeAArch64(const target::Target& target) {
  return std::make_unique<AArch64>(target);
}

}  // namespace hone::codegen
