// Divides a vector by a scalar with a reciprocal and a correction, instead of the divider, which
// takes ten cycles for a vector of sixteen floats.
#include "worker/compile/llvm/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

Value* DivideByUniform(MathBuilder& m, Value* numerators, Value* divisor) {
  llvm::IRBuilder<>& b = m.ir();
  const auto lanes = llvm::cast<llvm::VectorType>(numerators->getType())->getElementCount();
  const auto splat = [&](Value* value) { return b.CreateVectorSplat(lanes, value); };
  if (m.DividesQuickly(numerators)) return m.Div(numerators, splat(divisor));
  Value *scale, *small_scale, *unscale, *scaled, *reciprocal;
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
    Value* one = m.Number(divisor, 1);
    Value* denormal = b.CreateFCmpOLT(magnitude, m.Number(divisor, 0x1p-126, 0x1p-1022));
    Value* large = b.CreateFCmpOGT(magnitude, m.Number(divisor, 0x1p125, 0x1p1021));
    scale = b.CreateSelect(denormal, m.Number(divisor, 0x1p64),
                           b.CreateSelect(large, m.Number(divisor, 0x1p-64), one));
    scaled = m.Mul(divisor, scale);
    reciprocal = m.Div(one, scaled);
    // Small numerators are also scaled, and their quotients scaled back.
    small_scale = b.CreateSelect(denormal, scale, m.Mul(scale, m.Number(divisor, 0x1p60, 0x1p120)));
    unscale = b.CreateSelect(denormal, one, m.Number(divisor, 0x1p-60, 0x1p-120));
  }
  // The remainder of a small numerator would be denormal.
  Value* is_small = b.CreateFCmpOLT(m.Abs(numerators), m.Number(numerators, 0x1p-76, 0x1p-912));
  numerators = m.Mul(numerators, b.CreateSelect(is_small, splat(small_scale), splat(scale)));
  Value* quotient = m.Mul(numerators, splat(reciprocal));
  Value* rest = m.Fma(m.Neg(quotient), splat(scaled), numerators);
  Value* corrected = m.Fma(rest, splat(reciprocal), quotient);
  // Returns the quotient unchanged if it is 0, because adding a remainder of 0 would lose the sign
  // of −0, and if it is ∞, NaN or overflows, because there is no remainder.
  Value* final_already = b.CreateFCmpUEQ(corrected, m.Number(corrected, 0));
  return m.Mul(b.CreateSelect(final_already, quotient, corrected),
               b.CreateSelect(is_small, splat(unscale), m.Number(numerators, 1)));
}

}  // namespace hone::codegen
