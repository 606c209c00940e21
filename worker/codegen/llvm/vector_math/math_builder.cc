#include "worker/codegen/llvm/vector_math/math_builder.h"

namespace hone::codegen {

using llvm::Value;

Value* MathBuilder::Bits(Value* like, uint64_t value) {
  llvm::Type* integer = b_.getIntNTy(like->getType()->getScalarSizeInBits());
  return llvm::ConstantInt::get(like->getType()->getWithNewType(integer), value);
}

Value* MathBuilder::AtMost(Value* x, double f32, double f64) {
  Value* limit = Number(x, f32, f64);
  return b_.CreateSelect(b_.CreateFCmpOLT(limit, x), limit, x);
}

Value* MathBuilder::AtLeast(Value* x, double f32, double f64) {
  Value* limit = Number(x, f32, f64);
  return b_.CreateSelect(b_.CreateFCmpOGT(limit, x), limit, x);
}

Value* MathBuilder::Polynomial(Value* x, absl::Span<const double> f32,
                               absl::Span<const double> f64) {
  const absl::Span<const double> c = IsF64(x) ? f64 : f32;
  Value* sum = Number(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = Fma(sum, x, Number(x, c[i]));
  return sum;
}

Value* MathBuilder::DivideBySum(Value* numerator, Value* large, Value* small) {
  Value* sum = Add(large, small);
  Value* lost = Sub(small, Sub(sum, large));
  Value* reciprocal = Div(Number(large, 1), sum);
  Value* quotient = Mul(numerator, reciprocal);
  Value* minus = Neg(quotient);
  Value* rest = Fma(minus, lost, Fma(minus, sum, numerator));
  return Fma(rest, reciprocal, quotient);
}

}  // namespace hone::codegen
