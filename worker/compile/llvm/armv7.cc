#include <vector>

#include "absl/status/statusor.h"
#include "common/base/status_macros.h"
#include "common/target/target.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/Transforms/Utils/IntegerDivision.h"
#include "worker/compile/llvm/cpu_guard.h"
#include "worker/compile/llvm/machine.h"

namespace hone::codegen {
namespace {

using llvm::Instruction;
using llvm::Value;

constexpr double kTwo32 = 0x1p32;

// Returns a vector type with as many lanes as `like`, or the scalar itself.
llvm::Type* WithLanes(llvm::Type* scalar, llvm::Type* like) {
  const auto* const vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}
llvm::Constant* Number(llvm::Type* type, double value) {
  return llvm::ConstantFP::get(type, value);
}

bool IsI64(const llvm::Type* type) { return type->getScalarType()->isIntegerTy(64); }
bool IsDivision(const Instruction& instruction) {
  switch (instruction.getOpcode()) {
    case Instruction::SDiv:
    case Instruction::UDiv:
    case Instruction::SRem:
    case Instruction::URem:
      return true;
    default:
      return false;
  }
}

void Replace(Instruction& old, Value* with) {
  old.replaceAllUsesWith(with);
  old.eraseFromParent();
}

// Replaces a division of vectors with one of scalars for each lane.
void Scalarize(Instruction& division, std::vector<llvm::BinaryOperator*>& scalars) {
  auto* const whole = llvm::cast<llvm::BinaryOperator>(&division);
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(division.getType());
  if (type == nullptr) {
    scalars.push_back(whole);
    return;
  }
  llvm::IRBuilder<> b(&division);
  Value* result = llvm::PoisonValue::get(division.getType());
  for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
    Value* const x = b.CreateExtractElement(whole->getOperand(0), lane);
    Value* const y = b.CreateExtractElement(whole->getOperand(1), lane);
    Value* const part = b.CreateBinOp(whole->getOpcode(), x, y);
    // Divisions of constants are folded.
    if (auto* const scalar = llvm::dyn_cast<llvm::BinaryOperator>(part)) scalars.push_back(scalar);
    result = b.CreateInsertElement(result, part, lane);
  }
  Replace(division, result);
}

// Rounds |x| to an integer, to even on ties, and gives it the sign of x: adding a number whose last
// digit is 1 rounds. Larger numbers are integers, and NaN stays NaN.
Value* Rint(llvm::IRBuilder<>& b, Value* x) {
  llvm::Type* const type = x->getType();
  const double large = type->getScalarType()->isDoubleTy() ? 0x1p52 : 0x1p23;
  Value* const magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
  Value* const sum = b.CreateFAdd(magnitude, Number(type, large));
  Value* const rounded = b.CreateFSub(sum, Number(type, large));
  Value* const has_digits = b.CreateFCmpOLT(magnitude, Number(type, large));
  return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign,
                                 b.CreateSelect(has_digits, rounded, magnitude), x);
}

Value* Rounded(llvm::IRBuilder<>& b, llvm::Intrinsic::ID id, Value* x) {
  llvm::Type* const type = x->getType();
  const auto sign = [&](Value* value) {
    return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, value, x);
  };
  if (id == llvm::Intrinsic::trunc) {
    Value* const magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x);
    return sign(Rounded(b, llvm::Intrinsic::floor, magnitude));
  }
  Value* const nearest = Rint(b, x);
  if (id == llvm::Intrinsic::rint) return nearest;
  const bool floor = id == llvm::Intrinsic::floor;
  Value* const beyond = floor ? b.CreateFCmpOGT(nearest, x) : b.CreateFCmpOLT(nearest, x);
  Value* const back = b.CreateFAdd(nearest, Number(type, floor ? -1 : 1));
  return sign(b.CreateSelect(beyond, back, nearest));
}

// high · 2^32 + low in f64: only the sum rounds.
Value* ToF64(llvm::IRBuilder<>& b, Value* value, bool is_signed) {
  llvm::Type* const i32 = WithLanes(b.getInt32Ty(), value->getType());
  llvm::Type* const f64 = WithLanes(b.getDoubleTy(), value->getType());
  Value* const high = b.CreateTrunc(b.CreateLShr(value, 32), i32);
  Value* const low = b.CreateUIToFP(b.CreateTrunc(value, i32), f64);
  Value* const top = is_signed ? b.CreateSIToFP(high, f64) : b.CreateUIToFP(high, f64);
  return b.CreateFAdd(b.CreateFMul(top, Number(f64, kTwo32)), low);
}

// Clears the last 11 bits of a number of more than 53 bits, and sets the bit above them if anything
// was lost. The result is exact in f64, and rounds to f32 as the number itself does.
Value* WithoutLowBits(llvm::IRBuilder<>& b, Value* value, bool is_signed) {
  llvm::Type* const type = value->getType();
  const auto number = [&](uint64_t bits) { return llvm::ConstantInt::get(type, bits); };
  constexpr uint64_t kLow = (1 << 11) - 1;
  Value* const low = b.CreateAnd(value, number(kLow));
  Value* const lost = b.CreateZExt(b.CreateICmpNE(low, number(0)), type);
  Value* const odd = b.CreateOr(b.CreateXor(value, low), b.CreateShl(lost, number(11)));
  Value* const magnitude =
      is_signed ? b.CreateBinaryIntrinsic(llvm::Intrinsic::abs, value, b.getFalse()) : value;
  return b.CreateSelect(b.CreateICmpUGE(magnitude, number(uint64_t{1} << 53)), odd, value);
}

Value* FromI64(llvm::IRBuilder<>& b, Value* value, llvm::Type* to, bool is_signed) {
  if (to->getScalarType()->isDoubleTy()) return ToF64(b, value, is_signed);
  return b.CreateFPTrunc(ToF64(b, WithoutLowBits(b, value, is_signed), is_signed), to);
}

// Converts towards zero. REQUIRES: the value is in the range of the result.
Value* ToI64(llvm::IRBuilder<>& b, Value* value, llvm::Type* to, bool is_signed) {
  llvm::Type* const i32 = WithLanes(b.getInt32Ty(), to);
  llvm::Type* const f64 = WithLanes(b.getDoubleTy(), to);
  if (value->getType() != f64) value = b.CreateFPExt(value, f64);
  Value* const magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, value);
  Value* const high = b.CreateFPToUI(b.CreateFMul(magnitude, Number(f64, 1 / kTwo32)), i32);
  Value* const rest =
      b.CreateFSub(magnitude, b.CreateFMul(b.CreateUIToFP(high, f64), Number(f64, kTwo32)));
  Value* const low = b.CreateFPToUI(rest, i32);
  Value* const whole = b.CreateOr(b.CreateShl(b.CreateZExt(high, to), 32), b.CreateZExt(low, to));
  if (!is_signed) return whole;
  Value* const negative = b.CreateFCmpOLT(value, Number(f64, 0));
  return b.CreateSelect(negative, b.CreateNeg(whole), whole);
}

// Returns the quotient or remainder of integers of up to 32 bits. Their quotient in f64 never
// rounds up to the next whole number.
Value* DividedAsF64(llvm::IRBuilder<>& b, const Instruction& division) {
  const unsigned opcode = division.getOpcode();
  const bool is_signed = opcode == Instruction::SDiv || opcode == Instruction::SRem;
  Value* const x = division.getOperand(0);
  Value* const y = division.getOperand(1);
  llvm::Type* const f64 = WithLanes(b.getDoubleTy(), x->getType());
  const auto real = [&](Value* value) {
    return is_signed ? b.CreateSIToFP(value, f64) : b.CreateUIToFP(value, f64);
  };
  Value* const ratio = b.CreateFDiv(real(x), real(y));
  Value* const quotient =
      is_signed ? b.CreateFPToSI(ratio, x->getType()) : b.CreateFPToUI(ratio, x->getType());
  const bool remainder = opcode == Instruction::SRem || opcode == Instruction::URem;
  return remainder ? b.CreateSub(x, b.CreateMul(quotient, y)) : quotient;
}

// Returns what replaces an instruction, or nullptr.
Value* Replacement(llvm::IRBuilder<>& b, Instruction& instruction) {
  if (const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    switch (call->getIntrinsicID()) {
      case llvm::Intrinsic::rint:
      case llvm::Intrinsic::floor:
      case llvm::Intrinsic::ceil:
      case llvm::Intrinsic::trunc:
        return Rounded(b, call->getIntrinsicID(), call->getArgOperand(0));
      default:
        return nullptr;
    }
  }
  if (!llvm::isa<llvm::CastInst>(instruction)) return nullptr;
  Value* const operand = instruction.getOperand(0);
  llvm::Type* const to = instruction.getType();
  switch (instruction.getOpcode()) {
    case Instruction::SIToFP:
    case Instruction::UIToFP:
      if (!IsI64(operand->getType())) return nullptr;
      return FromI64(b, operand, to, instruction.getOpcode() == Instruction::SIToFP);
    case Instruction::FPToSI:
    case Instruction::FPToUI:
      if (!IsI64(to)) return nullptr;
      return ToI64(b, operand, to, instruction.getOpcode() == Instruction::FPToSI);
    default:
      return nullptr;
  }
}

// For CPUs of 32 bits whose FPU does not round to integers: replaces divisions of i64, conversions
// between i64 and floats, and rint, floor, ceil and trunc with instructions that these CPUs have.
// LLVM would call library functions, which costs more and spills all vectors. All results are exact
// or rounded once, as before. Without `divides_i32`, the CPU has no division of integers at all.
void InlineOperations(llvm::Module& module, bool divides_i32) {
  std::vector<Instruction*> all;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (Instruction& instruction : block) all.push_back(&instruction);
    }
  }
  std::vector<llvm::BinaryOperator*> divisions;
  for (Instruction* const instruction : all) {
    if (IsDivision(*instruction) && IsI64(instruction->getType())) {
      Scalarize(*instruction, divisions);
      continue;
    }
    llvm::IRBuilder<> b(instruction);
    // LLVM multiplies instead of dividing by constants.
    if (IsDivision(*instruction) && !divides_i32 &&
        !llvm::isa<llvm::Constant>(instruction->getOperand(1))) {
      Replace(*instruction, DividedAsF64(b, *instruction));
      continue;
    }
    if (Value* const value = Replacement(b, *instruction)) Replace(*instruction, value);
  }
  for (llvm::BinaryOperator* const division : divisions) {
    const bool remainder =
        division->getOpcode() == Instruction::SRem || division->getOpcode() == Instruction::URem;
    remainder ? llvm::expandRemainderUpTo64Bits(division)
              : llvm::expandDivisionUpTo64Bits(division);
  }
}

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

// Machine::EmitCpuGuard of ARMv7 under Linux, and of newer CPUs that run its code. InvalidArgument:
// the subtarget has a feature for which no bit is known.
absl::StatusOr<llvm::Function*> EmitArmv7CpuGuard(llvm::Module& module,
                                                  const llvm::MCSubtargetInfo& subtarget,
                                                  const target::Target& target) {
  HONE_ASSIGN_OR_RETURN(const HwCaps caps,
                        HwCapsIn(subtarget, target, kArmv7Features, kArmv7Unchecked));
  return EmitHwCapGuard(module, caps, /*sve_bytes=*/0);
}

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
