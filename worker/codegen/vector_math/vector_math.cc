#include "worker/codegen/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

VectorMath::VectorMath(llvm::IRBuilder<>& builder, const target::Target& target) : b_(builder) {
  if (target.arch != "x86_64" || !target.HasFeature("avx512f")) return;
  hardware_scale_narrow_ = target.HasFeature("avx512vl");
  hardware_scale_bits_ = hardware_scale_narrow_ ? target.vector_bits : 512;
}

Value* VectorMath::Rsqrt(Value* x) {
  return b_.CreateFDiv(Number(x, 1), b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, x));
}

Value* VectorMath::AtMost(Value* x, double bound) {
  Value* limit = Number(x, bound);
  return b_.CreateSelect(b_.CreateFCmpOLT(limit, x), limit, x);
}

Value* VectorMath::AtLeast(Value* x, double bound) {
  Value* limit = Number(x, bound);
  return b_.CreateSelect(b_.CreateFCmpOGT(limit, x), limit, x);
}

Value* VectorMath::Polynomial(Value* x, absl::Span<const double> c) {
  Value* sum = Number(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) sum = Fma(sum, x, Number(x, c[i]));
  return sum;
}

Value* VectorMath::Fma(Value* a, Value* b, Value* c) {
  return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}

Value* VectorMath::Abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }

Value* VectorMath::CopySign(Value* magnitude, Value* sign) {
  return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}

Value* VectorMath::Number(Value* like, double value) {
  return llvm::ConstantFP::get(like->getType(), value);
}

Value* VectorMath::Bits(Value* like, uint64_t value) {
  llvm::Type* integer = b_.getIntNTy(like->getType()->getScalarSizeInBits());
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like->getType())) {
    integer = llvm::FixedVectorType::get(integer, vector->getNumElements());
  }
  return llvm::ConstantInt::get(integer, value);
}

Value* VectorMath::ToBits(Value* x) { return b_.CreateBitCast(x, Bits(x, 0)->getType()); }

}  // namespace hone::codegen
