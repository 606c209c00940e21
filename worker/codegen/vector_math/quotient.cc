// Divides a vector by a scalar with a reciprocal and a correction, instead of the divider, which
// takes ten cycles for a vector of sixteen floats.

#include <cmath>

#include "worker/codegen/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

Value* VectorMath::DivideByUniform(Value* numerators, Value* divisor) {
  const bool f64 = IsF64(divisor);
  const double smallest = std::ldexp(1.0, f64 ? -1022 : -126);
  const double largest = std::ldexp(1.0, f64 ? 1021 : 125);
  // Computes the reciprocal where the scalar is computed, outside the loops that it does not depend
  // on.
  const auto saved = b_.saveIP();
  if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(divisor)) {
    llvm::BasicBlock* const block = instruction->getParent();
    b_.SetInsertPoint(block, instruction->getInsertionPointAfterDef().value_or(block->end()));
  }
  // Both operands are scaled if the reciprocal would overflow or lose bits as a denormal.
  Value* magnitude = Abs(divisor);
  Value* scale = b_.CreateSelect(
      b_.CreateFCmpOLT(magnitude, Number(divisor, smallest)), Number(divisor, std::ldexp(1.0, 64)),
      b_.CreateSelect(b_.CreateFCmpOGT(magnitude, Number(divisor, largest)),
                      Number(divisor, std::ldexp(1.0, -64)), Number(divisor, 1)));
  Value* scaled = b_.CreateFMul(divisor, scale);
  Value* reciprocal = b_.CreateFDiv(Number(divisor, 1), scaled);
  b_.restoreIP(saved);
  const auto lanes = llvm::cast<llvm::VectorType>(numerators->getType())->getElementCount();
  const auto splat = [&](Value* value) { return b_.CreateVectorSplat(lanes, value); };
  numerators = b_.CreateFMul(numerators, splat(scale));
  Value* quotient = b_.CreateFMul(numerators, splat(reciprocal));
  Value* rest = Fma(b_.CreateFNeg(quotient), splat(scaled), numerators);
  Value* corrected = Fma(rest, splat(reciprocal), quotient);
  // Returns the quotient unchanged if it is 0, because adding a remainder of 0 would lose the sign
  // of −0, and if it is ∞, NaN or overflows, because there is no remainder.
  Value* final_already = b_.CreateFCmpUEQ(corrected, Number(corrected, 0));
  return b_.CreateSelect(final_already, quotient, corrected);
}

}  // namespace hone::codegen
