// exp, sigmoid, tanh: x = n·ln 2 + r, e^x = 2^n · e^r.

#include <algorithm>

#include "llvm/IR/IntrinsicsX86.h"
#include "worker/codegen/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

namespace {

constexpr double kLog2E = 0x1.71547652b82fep+0;
// ln 2 in two parts of the format's precision; fma subtracts n·high exactly.
constexpr double kLn2HighF32 = 0x1.62e43p-1, kLn2LowF32 = -0x1.05c61p-29;
constexpr double kLn2HighF64 = 0x1.62e42fefa39efp-1, kLn2LowF64 = 0x1.abc9e3b39803fp-56;
// Adding this rounds to an integer, which is then in the low bits.
constexpr double kRoundF32 = 0x1.8p23, kRoundF64 = 0x1.8p52;

// (e^r − 1 − r) / r² on |r| ≤ ln 2 / 2, weighted by r² / (e^r − 1): 0.14 ulp of e^r − 1 in both
// formats.
constexpr double kExpm1F32[] = {0x1.fffffep-2, 0x1.5554bp-3, 0x1.555674p-5, 0x1.122768p-7,
                                0x1.6bec4ep-10};
constexpr double kExpm1F64[] = {0x1.0000000000005p-1,  0x1.555555555553ap-3,  0x1.55555555522c2p-5,
                                0x1.1111111118f33p-7,  0x1.6c16c17ed905ep-10, 0x1.a01a017544473p-13,
                                0x1.a019a77777e05p-16, 0x1.71de87943e3c2p-19, 0x1.28a1d784a31bfp-22,
                                0x1.ae6c63da9339ap-26};

// Slightly beyond the limits where e^x overflows and where it is less than half of the smallest
// denormal.
constexpr double kExpHighF32 = 88.73, kExpLowF32 = -104;
constexpr double kExpHighF64 = 709.79, kExpLowF64 = -745.2;
// Where tanh rounds to 1.
constexpr double kTanhEndF32 = 9.02, kTanhEndF64 = 19.1;

}  // namespace

VectorMath::Reduced VectorMath::ReduceByLn2(Value* x, int bias) {
  const bool f64 = IsF64(x);
  Value* round = Number(x, (f64 ? kRoundF64 : kRoundF32) + bias);
  Value* shifted = Fma(x, Number(x, kLog2E), round);
  Value* n = b_.CreateFSub(shifted, round);
  Value* r = Fma(n, Number(x, f64 ? -kLn2HighF64 : -kLn2HighF32), x);
  r = Fma(n, Number(x, f64 ? -kLn2LowF64 : -kLn2LowF32), r);
  return {r, n, ToBits(shifted)};
}

Value* VectorMath::ExpOfReduced(Value* r, Rounding rounding) {
  if (rounding == Rounding::kOnce) return b_.CreateFAdd(Expm1OfReduced(r), Number(r, 1));
  Value* q = IsF64(r) ? Polynomial(r, kExpm1F64) : Polynomial(r, kExpm1F32);
  return Fma(Fma(q, r, Number(r, 1)), r, Number(r, 1));
}

Value* VectorMath::Expm1OfReduced(Value* r) {
  Value* q = IsF64(r) ? Polynomial(r, kExpm1F64) : Polynomial(r, kExpm1F32);
  return Fma(b_.CreateFMul(r, r), q, r);
}

Value* VectorMath::PowerOfTwo(Value* bits) {
  const bool f64 = bits->getType()->getScalarSizeInBits() == 64;
  Value* shifted = b_.CreateShl(bits, llvm::ConstantInt::get(bits->getType(), f64 ? 52 : 23));
  llvm::Type* scalar = f64 ? b_.getDoubleTy() : b_.getFloatTy();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(bits->getType());
  return b_.CreateBitCast(
      shifted,
      vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements()));
}

Value* VectorMath::ScaleByHardware(Value* value, Value* exponent) {
  const bool f64 = IsF64(value);
  const int lanes =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements());
  const int element = f64 ? 64 : 32;
  int width = hardware_scale_bits_;
  while (hardware_scale_narrow_ && width > 128 && width / 2 >= lanes * element) width /= 2;
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

VectorMath::Reduced VectorMath::ReduceByLn2(Value* x) {
  if (HasHardwareScale(x)) return ReduceByLn2(x, 0);
  return ReduceByLn2(x, IsF64(x) ? 2 * 1023 : 2 * 127);
}

Value* VectorMath::TimesPowerOfTwo(Value* significand, const Reduced& reduced) {
  if (HasHardwareScale(significand)) return ScaleByHardware(significand, reduced.n);
  // 2^n as two normal factors. The first product is exact; the second rounds once, to a denormal.
  Value* half = b_.CreateLShr(reduced.bits, llvm::ConstantInt::get(reduced.bits->getType(), 1));
  Value* rest = b_.CreateSub(reduced.bits, half);
  return b_.CreateFMul(b_.CreateFMul(significand, PowerOfTwo(half)), PowerOfTwo(rest));
}

Value* VectorMath::ExpOfClamped(Value* x, Rounding rounding) {
  const Reduced reduced = ReduceByLn2(x);
  return TimesPowerOfTwo(ExpOfReduced(reduced.r, rounding), reduced);
}

Value* VectorMath::Exp(Value* x) {
  const bool f64 = IsF64(x);
  return ExpOfClamped(
      AtLeast(AtMost(x, f64 ? kExpHighF64 : kExpHighF32), f64 ? kExpLowF64 : kExpLowF32),
      Rounding::kFast);
}

Value* VectorMath::DivideBySum(Value* numerator, Value* large, Value* small) {
  Value* sum = b_.CreateFAdd(large, small);
  Value* lost = b_.CreateFSub(small, b_.CreateFSub(sum, large));
  Value* reciprocal = b_.CreateFDiv(Number(large, 1), sum);
  Value* quotient = b_.CreateFMul(numerator, reciprocal);
  Value* minus = b_.CreateFNeg(quotient);
  Value* rest = Fma(minus, lost, Fma(minus, sum, numerator));
  return Fma(rest, reciprocal, quotient);
}

// With z = e^−|x| ≤ 1: 1 / (1 + z) for x ≥ 0, z / (1 + z) else.
Value* VectorMath::Sigmoid(Value* x) {
  Value* z = ExpOfClamped(AtLeast(b_.CreateFNeg(Abs(x)), IsF64(x) ? kExpLowF64 : kExpLowF32),
                          Rounding::kOnce);
  Value* one = Number(x, 1);
  Value* numerator = b_.CreateSelect(b_.CreateFCmpOLT(x, Number(x, 0)), z, one);
  return DivideBySum(numerator, one, z);
}

// With m = e^−2|x| − 1 = 2^n·(e^r − 1) + (2^n − 1): −m / (2 + m).
Value* VectorMath::Tanh(Value* x) {
  const bool f64 = IsF64(x);
  Value* a = AtMost(Abs(x), f64 ? kTanhEndF64 : kTanhEndF32);
  const Reduced reduced = ReduceByLn2(b_.CreateFMul(a, Number(x, -2)), f64 ? 1023 : 127);
  Value* scale = PowerOfTwo(reduced.bits);
  Value* m = Fma(Expm1OfReduced(reduced.r), scale, b_.CreateFSub(scale, Number(x, 1)));
  return CopySign(DivideBySum(m, Number(x, 2), m), x);
}

}  // namespace hone::codegen
