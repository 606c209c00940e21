// exp, sigmoid, tanh: x = n·ln 2 + r, e^x = 2^n · e^r.
#include "worker/codegen/llvm/vector_math/exponential.h"

#include "worker/codegen/llvm/vector_math/vector_math.h"

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

// Returns e^x for x that is at most slightly beyond the range where e^x overflows or vanishes.
Value* ExpOfClamped(MathBuilder& m, Value* x, Rounding rounding) {
  const Reduced reduced = ReduceByLn2(m, x);
  return TimesPowerOfTwo(m, ExpOfReduced(m, reduced.r, rounding), reduced);
}

}  // namespace

Reduced ReduceByLn2(MathBuilder& m, Value* x, int bias) {
  Value* round = m.Number(x, kRoundF32 + bias, kRoundF64 + bias);
  Value* shifted = m.Fma(x, m.Number(x, kLog2E), round);
  Value* n = m.Sub(shifted, round);
  Value* r = m.Fma(n, m.Number(x, -kLn2HighF32, -kLn2HighF64), x);
  r = m.Fma(n, m.Number(x, -kLn2LowF32, -kLn2LowF64), r);
  return {r, n, m.ToBits(shifted)};
}

Reduced ReduceByLn2(MathBuilder& m, Value* x) {
  return ReduceByLn2(m, x, m.HasHardwareScale(x) ? 0 : 2 * BiasOf(x));
}

Value* ExpOfReduced(MathBuilder& m, Value* r, Rounding rounding) {
  Value* one = m.Number(r, 1);
  if (rounding == Rounding::kOnce) return m.Add(Expm1OfReduced(m, r), one);
  return m.Fma(m.Fma(m.Polynomial(r, kExpm1F32, kExpm1F64), r, one), r, one);
}

Value* Expm1OfReduced(MathBuilder& m, Value* r) {
  Value* q = m.Polynomial(r, kExpm1F32, kExpm1F64);
  return m.Fma(m.Mul(r, r), q, r);
}

Value* ExpOfSum(MathBuilder& m, Value* high, Value* low) {
  Value* bounded = m.AtLeast(m.AtMost(high, kExpHighF32, kExpHighF64), kExpLowF32, kExpLowF64);
  Value* inside = m.ir().CreateFCmpOEQ(bounded, high);
  low = m.ir().CreateSelect(inside, low, m.Number(high, 0));
  const Reduced reduced = ReduceByLn2(m, bounded);
  // The first difference is exact. The errors of the sums are added to the last term.
  Value* difference = m.Fma(reduced.n, m.Number(high, -kLn2HighF32, -kLn2HighF64), bounded);
  low = m.Fma(reduced.n, m.Number(high, -kLn2LowF32, -kLn2LowF64), low);
  Value* r = m.Add(difference, low);
  Value* one = m.Number(high, 1);
  Value* sum = m.Add(one, r);
  Value* lost = m.Add(m.Sub(r, m.Sub(sum, one)), m.Sub(low, m.Sub(r, difference)));
  Value* tail = m.Fma(m.Mul(r, r), m.Polynomial(r, kExpm1F32, kExpm1F64), lost);
  return TimesPowerOfTwo(m, m.Add(sum, tail), reduced);
}

Value* PowerOfTwo(MathBuilder& m, Value* bits) {
  const bool f64 = bits->getType()->getScalarSizeInBits() == 64;
  Value* shifted = m.ir().CreateShl(bits, llvm::ConstantInt::get(bits->getType(), f64 ? 52 : 23));
  llvm::Type* scalar = f64 ? m.ir().getDoubleTy() : m.ir().getFloatTy();
  return m.ir().CreateBitCast(shifted, bits->getType()->getWithNewType(scalar));
}

Value* TimesPowerOfTwo(MathBuilder& m, Value* significand, const Reduced& reduced) {
  if (m.HasHardwareScale(significand)) return m.ScaleByHardware(significand, reduced.n);
  // 2^n as two normal factors. The first product is exact; the second rounds once, to a denormal.
  Value* half = m.ir().CreateLShr(reduced.bits, llvm::ConstantInt::get(reduced.bits->getType(), 1));
  Value* rest = m.ir().CreateSub(reduced.bits, half);
  return m.Mul(m.Mul(significand, PowerOfTwo(m, half)), PowerOfTwo(m, rest));
}

Value* Exp(MathBuilder& m, Value* x) {
  Value* bounded = m.AtLeast(m.AtMost(x, kExpHighF32, kExpHighF64), kExpLowF32, kExpLowF64);
  return ExpOfClamped(m, bounded, Rounding::kFast);
}

// With z = e^−|x| ≤ 1: 1 / (1 + z) for x ≥ 0, z / (1 + z) else.
Value* Sigmoid(MathBuilder& m, Value* x) {
  Value* z = ExpOfClamped(m, m.AtLeast(m.Neg(m.Abs(x)), kExpLowF32, kExpLowF64), Rounding::kOnce);
  Value* one = m.Number(x, 1);
  Value* negative = m.ir().CreateFCmpOLT(x, m.Number(x, 0));
  return m.DivideBySum(m.ir().CreateSelect(negative, z, one), one, z);
}

// With m = e^−2|x| − 1 = 2^n·(e^r − 1) + (2^n − 1): −m / (2 + m).
Value* Tanh(MathBuilder& m, Value* x) {
  Value* a = m.AtMost(m.Abs(x), kTanhEndF32, kTanhEndF64);
  const Reduced reduced = ReduceByLn2(m, m.Mul(a, m.Number(x, -2)), BiasOf(x));
  Value* scale = PowerOfTwo(m, reduced.bits);
  Value* minus = m.Fma(Expm1OfReduced(m, reduced.r), scale, m.Sub(scale, m.Number(x, 1)));
  return m.CopySign(m.DivideBySum(minus, m.Number(x, 2), minus), x);
}

}  // namespace hone::codegen
