#include "worker/compile/llvm/vector_math/math_builder.h"

#include "worker/compile/llvm/vector_parts.h"

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

namespace {

template <typename... Values>
Value* ComputeInParts(llvm::IRBuilder<>& b, int vector_bits, auto f, Value* x, Values*... more) {
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (type == nullptr) return f(x, more...);
  const int lanes = static_cast<int>(type->getNumElements());
  const int part = kFunctionRegisters * vector_bits / static_cast<int>(type->getScalarSizeInBits());
  if (lanes <= part) return f(x, more...);
  const auto parts = SplitLanes(b, x, part);
  llvm::SmallVector<Value*, 8> results;
  if constexpr (sizeof...(more) == 0) {
    for (Value* each : parts) results.push_back(f(each));
  } else {
    const auto others = SplitLanes(b, more..., part);
    for (size_t p = 0; p < parts.size(); ++p) results.push_back(f(parts[p], others[p]));
  }
  return JoinLanes(b, results, lanes);
}

}  // namespace

Value* MathBuilder::InParts(Value* x, Value* (*f)(MathBuilder&, Value*)) {
  return ComputeInParts(b_, machine_.vector_bits(), [&](Value* part) { return f(*this, part); }, x);
}

Value* MathBuilder::InParts(Value* x, Value* y, Value* (*f)(MathBuilder&, Value*, Value*)) {
  return ComputeInParts(
      b_, machine_.vector_bits(), [&](Value* a, Value* b) { return f(*this, a, b); }, x, y);
}

}  // namespace hone::codegen
