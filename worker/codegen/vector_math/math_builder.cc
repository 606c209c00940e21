#include "worker/codegen/vector_math/math_builder.h"

#include <algorithm>

#include "llvm/IR/IntrinsicsX86.h"

namespace hone::codegen {

using llvm::Value;

MathBuilder::MathBuilder(llvm::IRBuilder<>& builder, const target::Target& target) : b_(builder) {
  if (target.arch != "x86_64" || !target.HasFeature("avx512f")) return;
  scale_narrow_ = target.HasFeature("avx512vl");
  scale_bits_ = scale_narrow_ ? target.vector_bits : 512;
}

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

Value* MathBuilder::ScaleByHardware(Value* value, Value* exponent) {
  const bool f64 = IsF64(value);
  const int lanes =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements());
  const int element = f64 ? 64 : 32;
  int width = scale_bits_;
  while (scale_narrow_ && width > 128 && width / 2 >= lanes * element) width /= 2;
  const int part = width / element;
  const llvm::Intrinsic::ID id =
      width == 512   ? (f64 ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                            : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512)
      : width == 256 ? (f64 ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_256
                            : llvm::Intrinsic::x86_avx512_mask_scalef_ps_256)
                     : (f64 ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_128
                            : llvm::Intrinsic::x86_avx512_mask_scalef_ps_128);
  // Splits the value into registers; the last part is padded.
  const auto piece = [&](Value* whole, int begin) {
    llvm::SmallVector<int, 64> mask(part);
    for (int i = 0; i < part; ++i) mask[i] = begin + i < lanes ? begin + i : llvm::PoisonMaskElem;
    return lanes == part ? whole : b_.CreateShuffleVector(whole, mask);
  };
  Value* result = nullptr;
  for (int begin = 0; begin < lanes; begin += part) {
    Value* a = piece(value, begin);
    Value* n = piece(exponent, begin);
    auto* every = llvm::ConstantInt::getAllOnesValue(b_.getIntNTy(std::max(8, part)));
    llvm::SmallVector<Value*, 5> arguments = {a, n, a, every};
    if (width == 512) arguments.push_back(b_.getInt32(4));  // current rounding mode
    Value* scaled = b_.CreateIntrinsic(id, {}, arguments);
    if (lanes == part) return scaled;
    llvm::SmallVector<int, 64> mask(lanes);
    for (int i = 0; i < lanes; ++i)
      mask[i] = i >= begin && i < begin + part ? i - begin : llvm::PoisonMaskElem;
    Value* spread = b_.CreateShuffleVector(scaled, mask);
    if (result == nullptr) {
      result = spread;
      continue;
    }
    for (int i = 0; i < lanes; ++i) mask[i] = i < begin ? i : lanes + i;
    result = b_.CreateShuffleVector(result, spread, mask);
  }
  return result;
}

}  // namespace hone::codegen
