// Arithmetic in f16, for CPUs that have it.
#include "llvm/Analysis/VectorUtils.h"
#include "llvm/IR/IntrinsicInst.h"
#include "worker/compile/llvm/conversion.h"

namespace hone::codegen {

using llvm::Value;

// Returns the f16 that was converted to this float; nullptr if there is none.
Value* Conversion::AsHalf(Value* value) {
  if (const auto* extension = llvm::dyn_cast<llvm::FPExtInst>(value)) {
    return extension->getSrcTy()->getScalarType()->isHalfTy() ? extension->getOperand(0) : nullptr;
  }
  Value* element = value->getType()->isVectorTy() ? llvm::getSplatValue(value) : value;
  if (element == nullptr) return nullptr;
  Value* half = nullptr;
  if (const auto* constant = llvm::dyn_cast<llvm::ConstantFP>(element)) {
    llvm::APFloat number = constant->getValueAPF();
    bool loses = false;
    number.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &loses);
    if (!loses) half = llvm::ConstantFP::get(b_.getHalfTy(), number);
  } else if (element != value) {
    half = AsHalf(element);
  }
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return half == nullptr || vector == nullptr
             ? half
             : b_.CreateVectorSplat(vector->getNumElements(), half);
}

// If an operation on f16 is computed in f32 and then rounded to f16, the result is that of the
// operation in f16, although it is rounded twice: sums, differences, products, quotients and roots
// of numbers of p digits may first be rounded to 2p + 2 digits (Figueroa, When is double rounding
// innocuous?, 1995), and f32 has 24 = 2 * 11 + 2. The same holds for denormal results: sums and
// products are then exact in f32, and a quotient differs from the middle of two f16, which has at
// most 12 digits, by at least 2^-23 of it. It does not hold for a fused multiply-add.
Value* Conversion::HalfArithmetic(Value* value) {
  if (!machine_.ComputesF16()) return nullptr;
  if (const auto* root = llvm::dyn_cast<llvm::IntrinsicInst>(value)) {
    Value* a =
        root->getIntrinsicID() == llvm::Intrinsic::sqrt ? AsHalf(root->getArgOperand(0)) : nullptr;
    return a == nullptr ? nullptr : b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a);
  }
  const auto* operation = llvm::dyn_cast<llvm::BinaryOperator>(value);
  if (operation == nullptr) return nullptr;
  switch (operation->getOpcode()) {
    case llvm::Instruction::FAdd:
    case llvm::Instruction::FSub:
    case llvm::Instruction::FMul:
    case llvm::Instruction::FDiv:
      break;
    default:
      return nullptr;
  }
  Value* x = AsHalf(operation->getOperand(0));
  Value* y = AsHalf(operation->getOperand(1));
  return x == nullptr || y == nullptr ? nullptr : b_.CreateBinOp(operation->getOpcode(), x, y);
}

}  // namespace hone::codegen
