// log x = k·ln 2 + log(1 + f).
// pow: x^y = e^(y·log x). An error of the logarithm is multiplied by up to 745, so f64 computes the
// logarithm as a sum of two numbers; f32 computes in f64.
#include <limits>

#include "worker/compile/llvm/vector_math/exponential.h"
#include "worker/compile/llvm/vector_math/vector_math.h"

namespace hone::codegen {
namespace {

using llvm::Value;

// x = 2^k · (1 + f) with √½ ≤ 1 + f < √2, where f is exact and k is an integer in the type of x.
struct PowerAndFraction {
  Value *f, *k;
};
// The result is arbitrary unless x is positive and finite.
PowerAndFraction SplitPowerOfTwo(MathBuilder& m, Value* x) {
  llvm::IRBuilder<>& b = m.ir();
  const bool f64 = MathBuilder::IsF64(x);
  const int digits = f64 ? 52 : 23;
  const uint64_t bias = f64 ? 1023 : 127;
  // Denormals are scaled to normal numbers.
  const double scale = f64 ? 0x1p52 : 0x1p23;
  Value* small = b.CreateFCmpOLT(x, m.Number(x, 0x1p-126, 0x1p-1022));
  Value* y = b.CreateSelect(small, m.Mul(x, m.Number(x, scale)), x);
  // Subtracts the bits of √½: the exponent field is then k, and the fraction counts from √½.
  const uint64_t root = f64 ? 0x3fe6a09e667f3bcd : 0x3f3504f3;
  Value* moved = b.CreateAdd(m.ToBits(y), m.Bits(x, (bias << digits) - root));
  Value* field = b.CreateLShr(moved, m.Bits(x, digits));
  Value* fraction = b.CreateAnd(moved, m.Bits(x, (uint64_t{1} << digits) - 1));
  Value* f =
      m.Sub(b.CreateBitCast(b.CreateAdd(fraction, m.Bits(x, root)), x->getType()), m.Number(x, 1));
  // A small integer in the low bits of 2^digits.
  Value* number = b.CreateBitCast(
      b.CreateOr(field, m.Bits(x, f64 ? 0x4330000000000000 : 0x4b000000)), x->getType());
  Value* offset = b.CreateSelect(small, m.Number(x, scale + static_cast<double>(bias) + digits),
                                 m.Number(x, scale + static_cast<double>(bias)));
  return {f, m.Sub(number, offset)};
}

// ln 2 in f64 in two parts. The product of the high part with any exponent is exact.
constexpr double kLogOf2HighF64 = 0x1.62e42fee00000p-1;
constexpr double kLogOf2LowF64 = 0x1.a39ef35793c76p-33;
// k·high enters by fma.
constexpr double kLogOf2HighF32 = 0x1.62e43p-1, kLogOf2LowF32 = -0x1.05c61p-29;

// (log(1 + f) − f) / f², weighted by f² / log(1 + f): 0.05 ulp.
constexpr double kLogF32[] = {-0x1.fffff8p-2, 0x1.55555p-2,  -0x1.000426p-2,
                              0x1.99a3f4p-3,  -0x1.54275p-3, 0x1.22717p-3,
                              -0x1.0f384ap-3, 0x1.084a08p-3, -0x1.382f92p-4};
// (log((1 + s) / (1 − s)) − 2s) / s³ in s², weighted by s²: 0.01 ulp.
constexpr double kLogF64[] = {0x1.5555555555592p-1, 0x1.999999997fd4p-2,  0x1.24924941f86b4p-2,
                              0x1.c71c5202f468ap-3, 0x1.74664050de101p-3, 0x1.39a19427585b7p-3,
                              0x1.2f06fd4c5f634p-3};

// log(1 + f) + k·ln 2.
Value* LogF32(MathBuilder& m, Value* f, Value* k) {
  Value* tail =
      m.Fma(m.Mul(f, f), m.Polynomial(f, kLogF32, {}), m.Mul(k, m.Number(f, kLogOf2LowF32)));
  return m.Fma(k, m.Number(f, kLogOf2HighF32), m.Add(f, tail));
}

// s = f / (2 + f), log(1 + f) = f − (f²/2 − s·(f²/2 + R)) with R = s²·T(s²): the series of the
// inverse hyperbolic tangent (Muller, Elementary Functions, 3rd ed., section 11.4), grouped as in
// FDLIBM (Sun Microsystems 1993).
Value* LogF64(MathBuilder& m, Value* f, Value* k) {
  Value* s = m.Div(f, m.Add(f, m.Number(f, 2)));
  Value* z = m.Mul(s, s);
  Value* half_square = m.Mul(m.Mul(f, f), m.Number(f, 0.5));
  Value* sum = m.Fma(z, m.Polynomial(z, {}, kLogF64), half_square);
  Value* correction = m.Fma(s, sum, m.Mul(k, m.Number(f, kLogOf2LowF64)));
  Value* rest = m.Sub(f, m.Sub(half_square, correction));
  return m.Fma(k, m.Number(f, kLogOf2HighF64), rest);
}

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// An unevaluated sum, where `low` is small (Dekker, 1971; Muller et al., Handbook of Floating-Point
// Arithmetic, 2nd ed., chapter 14).
struct Sum {
  Value *high, *low;
};

// REQUIRES: a is 0, or its exponent is at least that of b.high.
Sum Add(MathBuilder& m, Value* a, Sum b) {
  Value* high = m.Add(a, b.high);
  return {high, m.Add(m.Sub(b.high, m.Sub(high, a)), b.low)};
}
// Leaves out the product of the low parts.
Sum Multiply(MathBuilder& m, Sum a, Sum b) {
  Value* high = m.Mul(a.high, b.high);
  Value* low = m.Fma(a.high, b.high, m.Neg(high));
  return {high, m.Fma(a.high, b.low, m.Fma(a.low, b.high, low))};
}
// Adds high + lost + b, where `lost` is the rounding error of the constant `high`.
Sum AddConstant(MathBuilder& m, double high, double lost, Sum b) {
  Value* constant = m.Number(b.high, high);
  Sum sum = Add(m, constant, b);
  if (lost != 0) sum.low = m.Add(sum.low, m.Number(b.high, lost));
  return sum;
}

// The terms of the series of log((1 + s) / (1 − s)) = 2s + 2/3 s³ + 2/5 s⁵ + …, and the rest
// divided by s⁷, in s²: 1e-6 ulp of the logarithm.
constexpr double kThirdHigh = 0x1.5555555555555p-1, kThirdLow = 0x1.5555555555555p-55;
constexpr double kFifthHigh = 0x1.999999999999ap-2, kFifthLow = -0x1.999999999999ap-56;
constexpr double kRest[] = {0x1.24924924927cdp-2, 0x1.c71c71c65a0c2p-3, 0x1.745d17d7637bfp-3,
                            0x1.3b137833d67bdp-3, 0x1.111dce7f80078p-3, 0x1.de9e8061cf151p-4,
                            0x1.e7e002f9ad151p-4};

// Returns log x for positive finite x in f64, with a relative error below 2^-66.
Sum LogAsSum(MathBuilder& m, Value* x) {
  const auto [f, k] = SplitPowerOfTwo(m, x);
  // s = f / (2 + f), with the errors of the sum and of the division.
  Value* two = m.Number(x, 2);
  Value* divisor = m.Add(f, two);
  Value* lost = m.Sub(f, m.Sub(divisor, two));
  Value* reciprocal = m.Div(m.Number(x, 1), divisor);
  Value* quotient = m.Mul(f, reciprocal);
  Value* minus = m.Neg(quotient);
  Value* rest = m.Fma(minus, lost, m.Fma(minus, divisor, f));
  const Sum s = {quotient, m.Mul(rest, reciprocal)};
  const Sum z = Multiply(m, s, s);
  Value* tail = m.Mul(z.high, m.Polynomial(z.high, {}, kRest));
  const Sum fifth = AddConstant(m, kFifthHigh, kFifthLow, {tail, m.Number(x, 0)});
  const Sum third = AddConstant(m, kThirdHigh, kThirdLow, Multiply(m, z, fifth));
  const Sum log = Multiply(m, s, AddConstant(m, 2, 0, Multiply(m, z, third)));
  const Sum both = Add(m, m.Mul(k, m.Number(x, kLogOf2HighF64)), log);
  return {both.high, m.Fma(k, m.Number(x, kLogOf2LowF64), both.low)};
}

// Every power of a number other than 1 is 0 or ∞ at these limits, and 1 to an infinite power is 1.
Value* Bounded(MathBuilder& m, Value* exponent) {
  return m.AtLeast(m.AtMost(exponent, 0, 0x1p64), 0, -0x1p64);
}

// Every power of a positive finite number is 1 for smaller exponents, whose products may be
// denormal.
Value* WithoutTiny(MathBuilder& m, Value* exponent) {
  return m.CopySign(m.AtLeast(m.Abs(exponent), 0x1p-80, 0x1p-200), exponent);
}

// e to the power of a smaller number is less than half of the smallest denormal of f32, and e to
// the power of kVanishing is 0 in f64.
constexpr double kLeastF32 = -0x1.9fe368p6, kVanishing = -1000;

// Returns |x|^y for f64.
Value* PowerOfMagnitude(MathBuilder& m, Value* magnitude, Value* y) {
  llvm::IRBuilder<>& b = m.ir();
  Sum log = LogAsSum(m, magnitude);
  Value* finite = b.CreateFCmpOLT(magnitude, m.Number(magnitude, kInfinite));
  log.high = b.CreateSelect(finite, log.high, magnitude);
  Value* zero = b.CreateFCmpOEQ(magnitude, m.Number(magnitude, 0));
  log.high = b.CreateSelect(zero, m.Number(magnitude, -kInfinite), log.high);
  Value* exponent = Bounded(m, y);
  Value* high = m.Mul(log.high, exponent);
  Value* low = m.Fma(log.high, exponent, m.Neg(high));
  return ExpOfSum(m, high, m.Fma(log.low, exponent, low));
}

// Returns |x|^y for f32, computed in f64. The conversion rounds to ∞, denormals and 0.
Value* PowerOfMagnitudeInF64(MathBuilder& m, Value* magnitude, Value* y) {
  llvm::IRBuilder<>& b = m.ir();
  llvm::Type* wide = y->getType()->getWithNewType(b.getDoubleTy());
  Value* log = Log(m, b.CreateFPExt(magnitude, wide));
  Value* exponent = Bounded(m, b.CreateFPExt(y, wide));
  Value* product = m.Mul(log, exponent);
  Value* vanishes = b.CreateFCmpOLT(product, m.Number(product, kLeastF32));
  product = b.CreateSelect(vanishes, m.Number(product, kVanishing), product);
  return b.CreateFPTrunc(Exp(m, product), y->getType());
}

Value* RoundedToWhole(MathBuilder& m, Value* x) {
  return m.ir().CreateUnaryIntrinsic(llvm::Intrinsic::rint, x);
}

}  // namespace

Value* Log(MathBuilder& m, Value* x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  llvm::IRBuilder<>& b = m.ir();
  const auto [f, k] = SplitPowerOfTwo(m, x);
  Value* result = MathBuilder::IsF64(x) ? LogF64(m, f, k) : LogF32(m, f, k);
  // ∞ and NaN return themselves; 0 and negative numbers have special results.
  result = b.CreateSelect(b.CreateFCmpOLT(x, m.Number(x, kInfinity)), result, x);
  Value* nonpositive = b.CreateSelect(b.CreateFCmpOEQ(x, m.Number(x, 0)), m.Number(x, -kInfinity),
                                      m.Number(x, std::numeric_limits<double>::quiet_NaN()));
  return b.CreateSelect(b.CreateFCmpOLE(x, m.Number(x, 0)), nonpositive, result);
}

Value* Pow(MathBuilder& m, Value* x, Value* y) {
  llvm::IRBuilder<>& b = m.ir();
  Value* exponent = WithoutTiny(m, y);
  Value* power = MathBuilder::IsF64(x) ? PowerOfMagnitude(m, m.Abs(x), exponent)
                                       : PowerOfMagnitudeInF64(m, m.Abs(x), exponent);
  Value* whole = b.CreateFCmpOEQ(RoundedToWhole(m, y), y);
  Value* half = m.Mul(exponent, m.Number(y, 0.5));
  Value* odd = b.CreateAnd(whole, b.CreateFCmpONE(RoundedToWhole(m, half), half));
  power = b.CreateSelect(odd, m.CopySign(power, x), power);
  // The result is NaN for a negative finite base, unless the exponent is an integer.
  Value* zero = m.Number(x, 0);
  Value* negative = b.CreateFCmpOLT(x, zero);
  Value* finite = b.CreateFCmpOGT(x, m.Number(x, -kInfinite));
  Value* undefined = b.CreateAnd(b.CreateAnd(negative, finite), b.CreateNot(whole));
  power = b.CreateSelect(undefined, m.Number(x, std::numeric_limits<double>::quiet_NaN()), power);
  // These are 1 even if the other operand is NaN.
  Value* one = m.Number(x, 1);
  Value* always_one = b.CreateOr(b.CreateFCmpOEQ(x, one), b.CreateFCmpOEQ(y, zero));
  return b.CreateSelect(always_one, one, power);
}

}  // namespace hone::codegen
