// Division of a vector by one number: a reciprocal and a correction in place of the divider, which
// takes ten cycles for a vector of sixteen floats.

#include <cmath>

#include "worker/codegen/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

Value* VectorMath::DivideByUniform(Value* numerators, Value* divisor) {
  const bool f64 = IsF64(divisor);
  const double smallest = std::ldexp(1.0, f64 ? -1022 : -126);
  const double largest = std::ldexp(1.0, f64 ? 1021 : 125);
  // Of the one number, where it is computed: behind the loops that it does not depend on.
  const auto saved = b_.saveIP();
  if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(divisor)) {
    llvm::BasicBlock* const block = instruction->getParent();
    b_.SetInsertPoint(block, instruction->getInsertionPointAfterDef().value_or(block->end()));
  }
  // Both sides are scaled where the reciprocal would overflow or lose bits as a denormal number.
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
  // The quotient stands as it is where it is 0, because a rest of 0 would take the sign of −0 away,
  // and where it is ∞, 0 / 0 or overflows, because then there is no rest.
  Value* final_already = b_.CreateFCmpUEQ(corrected, Number(corrected, 0));
  return b_.CreateSelect(final_already, quotient, corrected);
}

}  // namespace hone::codegen
