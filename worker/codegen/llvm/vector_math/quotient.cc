// Divides a vector by a scalar with a reciprocal and a correction, instead of the divider, which
// takes ten cycles for a vector of sixteen floats.
#include "worker/codegen/llvm/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

Value* DivideByUniform(MathBuilder& m, Value* numerators, Value* divisor) {
  llvm::IRBuilder<>& b = m.ir();
  Value *scale, *scaled, *reciprocal;
  {
    // Computes the reciprocal where the scalar is computed, outside the loops that it does not
    // depend on.
    const llvm::IRBuilderBase::InsertPointGuard guard(b);
    if (auto* instruction = llvm::dyn_cast<llvm::Instruction>(divisor)) {
      llvm::BasicBlock* const block = instruction->getParent();
      b.SetInsertPoint(block, instruction->getInsertionPointAfterDef().value_or(block->end()));
    }
    // Both operands are scaled if the reciprocal would overflow or lose bits as a denormal.
    Value* magnitude = m.Abs(divisor);
    scale = b.CreateSelect(
        b.CreateFCmpOLT(magnitude, m.Number(divisor, 0x1p-126, 0x1p-1022)),
        m.Number(divisor, 0x1p64),
        b.CreateSelect(b.CreateFCmpOGT(magnitude, m.Number(divisor, 0x1p125, 0x1p1021)),
                       m.Number(divisor, 0x1p-64), m.Number(divisor, 1)));
    scaled = m.Mul(divisor, scale);
    reciprocal = m.Div(m.Number(divisor, 1), scaled);
  }
  const auto lanes = llvm::cast<llvm::VectorType>(numerators->getType())->getElementCount();
  const auto splat = [&](Value* value) { return b.CreateVectorSplat(lanes, value); };
  numerators = m.Mul(numerators, splat(scale));
  Value* quotient = m.Mul(numerators, splat(reciprocal));
  Value* rest = m.Fma(m.Neg(quotient), splat(scaled), numerators);
  Value* corrected = m.Fma(rest, splat(reciprocal), quotient);
  // Returns the quotient unchanged if it is 0, because adding a remainder of 0 would lose the sign
  // of −0, and if it is ∞, NaN or overflows, because there is no remainder.
  Value* final_already = b.CreateFCmpUEQ(corrected, m.Number(corrected, 0));
  return b.CreateSelect(final_already, quotient, corrected);
}

}  // namespace hone::codegen
