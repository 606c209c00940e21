// exp, sigmoid, tanh: x = n·ln 2 + r, e^x = 2^n · e^r.
#include "worker/compile/llvm/vector_math/exponential.h"

#include <array>
#include <cmath>
#include <cstddef>

#include "worker/compile/llvm/vector_math/vector_math.h"

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

template <size_t kCount>
constexpr std::array<double, kCount> Twice(const double (&values)[kCount]) {
  std::array<double, kCount> twice{};
  for (size_t i = 0; i < kCount; ++i) twice[i] = 2 * values[i];
  return twice;
}
constexpr auto kTwiceExpm1F32 = Twice(kExpm1F32);
constexpr auto kTwiceExpm1F64 = Twice(kExpm1F64);

// Slightly beyond the limits where e^x overflows and where it is less than half of the smallest
// denormal.
constexpr double kExpHighF32 = 88.73, kExpLowF32 = -104;
constexpr double kExpHighF64 = 709.79, kExpLowF64 = -745.2;
// The least number whose power of e is at least half of the smallest denormal.
constexpr double kExpLeastF32 = -0x1.9fe368p6, kExpLeastF64 = -0x1.74910d52d3051p9;
// The same for x·e^x.
constexpr double kSiluLowF32 = -109, kSiluLowF64 = -752;
constexpr double kSiluLeastF32 = -0x1.b2a426p+6, kSiluLeastF64 = -0x1.77e0b87f54f95p+9;
// 2^-60 with the factor of LiftInverse().
constexpr double kSmallestF32 = 0x1p40, kSmallestF64 = 0x1p940;
// Where |x| is at most this, e^x and e^-x are normal numbers. With kModerate, they are more than
// 2^-60, and adding a smaller number to 1 does not change it.
constexpr double kUsualF32 = 87, kUsualF64 = 708;
constexpr double kModerate = 40;
// Where tanh rounds to 1.
constexpr double kTanhEndF32 = 9.02, kTanhEndF64 = 19.1;

Value* RoundWithBias(MathBuilder& m, Value* x, int bias) {
  return m.Number(x, kRoundF32 + bias, kRoundF64 + bias);
}

Reduced ReduceByLn2(MathBuilder& m, Value* x, Value* round) {
  Value* shifted = m.Fma(x, m.Number(x, kLog2E), round);
  Value* n = m.Sub(shifted, round);
  Value* r = m.Fma(n, m.Number(x, -kLn2HighF32, -kLn2HighF64), x);
  r = m.Fma(n, m.Number(x, -kLn2LowF32, -kLn2LowF64), r);
  return {r, n, m.ToBits(shifted)};
}

// e^x if |x| is at most kUsual.
Value* UsualExp(MathBuilder& m, Value* x) {
  const Reduced reduced = ReduceByLn2(m, x, RoundWithBias(m, x, BiasOf(x)));
  return m.Mul(ExpOfReduced(m, reduced.r), PowerOfTwo(m, reduced.bits));
}

// n / (1 + e^-x), where the numerator n is positive. Where x is less than 0, it is lifted.
struct Logistic {
  Value* quotient;
  Value* lifted;  // for which lanes
};

// Where x is less than `low`, the quotient is that of `low`.
Logistic LogisticOf(MathBuilder& m, Value* x, Value* numerator, double low_f32, double low_f64) {
  llvm::IRBuilder<>& b = m.ir();
  // A smaller power does not change the sum.
  Value* exponent = m.AtLeast(m.Neg(m.AtLeast(x, low_f32, low_f64)), -kModerate, -kModerate);
  Value* negative = b.CreateFCmpOLT(x, m.Number(x, 0));
  // The divisor of a lifted quotient has the inverse factor.
  const int bias = BiasOf(x);
  Value* round = b.CreateSelect(negative, RoundWithBias(m, x, 2 * bias - LiftedBias(x)),
                                RoundWithBias(m, x, bias));
  const Reduced reduced = ReduceByLn2(m, exponent, round);
  Value* power = m.Mul(ExpOfReduced(m, reduced.r), PowerOfTwo(m, reduced.bits));
  Value* one = b.CreateSelect(negative, LiftInverse(m, x), m.Number(x, 1));
  return {m.Div(numerator, m.Add(one, power)), negative};
}

// The same, not lifted, if |x| is at most kUsual.
Value* UsualLogistic(MathBuilder& m, Value* x, Value* numerator) {
  return m.Div(numerator, m.Add(m.Number(x, 1), UsualExp(m, m.Neg(x))));
}

}  // namespace

Reduced ReduceByLn2(MathBuilder& m, Value* x, int bias) {
  return ReduceByLn2(m, x, RoundWithBias(m, x, bias));
}

Value* ExpOfReduced(MathBuilder& m, Value* r) {
  Value* one = m.Number(r, 1);
  return m.Fma(m.Fma(m.Polynomial(r, kExpm1F32, kExpm1F64), r, one), r, one);
}

Value* Expm1OfReduced(MathBuilder& m, Value* r) {
  // Not r² · q: the square of a small r would be denormal.
  Value* q = m.Polynomial(r, kExpm1F32, kExpm1F64);
  return m.Fma(m.Mul(r, q), r, r);
}

Value* PowerOfTwo(MathBuilder& m, Value* bits) {
  const bool f64 = bits->getType()->getScalarSizeInBits() == 64;
  Value* shifted = m.ir().CreateShl(bits, llvm::ConstantInt::get(bits->getType(), f64 ? 52 : 23));
  llvm::Type* scalar = f64 ? m.ir().getDoubleTy() : m.ir().getFloatTy();
  return m.ir().CreateBitCast(shifted, bits->getType()->getWithNewType(scalar));
}

Value* LiftInverse(MathBuilder& m, Value* like) {
  return m.Number(like, std::ldexp(1.0, -kLiftF32), std::ldexp(1.0, -kLiftF64));
}

Value* Unlift(MathBuilder& m, Value* magnitude, Value* lifted) {
  llvm::IRBuilder<>& b = m.ir();
  const bool f64 = MathBuilder::IsF64(magnitude);
  const int lift = f64 ? kLiftF64 : kLiftF32;
  Value* bits = m.ToBits(magnitude);
  // A normal result has a smaller exponent.
  Value* exponent = m.Bits(magnitude, static_cast<uint64_t>(lift) << (f64 ? 52 : 23));
  Value* normal = b.CreateSub(bits, b.CreateSelect(lifted, exponent, m.Bits(magnitude, 0)));
  // A denormal result is a number of smallest denormals. Adding 2^23 rounds it to a whole number,
  // which is then in the low bits.
  Value* whole = m.Number(magnitude, 0x1p23, 0x1p52);
  Value* counted =
      m.Fma(magnitude,
            m.Number(magnitude, std::ldexp(1.0, 149 - lift), std::ldexp(1.0, 1074 - lift)), whole);
  Value* denormal = b.CreateSub(m.ToBits(counted), m.ToBits(whole));
  // Each of the two is too small where the other holds.
  return b.CreateBitCast(b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, normal, denormal),
                         magnitude->getType());
}

namespace {

// Returns a magnitude with the sign of x.
Value* WithSignOf(MathBuilder& m, Value* x, Value* magnitude) {
  llvm::IRBuilder<>& b = m.ir();
  Value* sign = b.CreateAnd(m.ToBits(x), m.ToBits(m.Number(x, -0.0)));
  return b.CreateBitCast(b.CreateOr(m.ToBits(magnitude), sign), x->getType());
}

}  // namespace

Value* UnliftProduct(MathBuilder& m, Value* x, Value* positive, Value* lifted, Value* vanishes) {
  llvm::IRBuilder<>& b = m.ir();
  // The product of 0 and −∞ is NaN, whose exponent must stay.
  positive = b.CreateSelect(vanishes, m.Number(x, 0), positive);
  lifted = b.CreateAnd(lifted, b.CreateNot(vanishes));
  return WithSignOf(m, x, Unlift(m, m.Mul(m.Abs(x), positive), lifted));
}

namespace {

// The exponent of e^x, reduced for TimesPowerOfTwo.
struct Exponent {
  Value* bounded;
  Reduced reduced;
  // With hardware scale, the lanes where e^x is less than half of the smallest denormal; e^0 is
  // computed there, so that nothing underflows. Else the lanes that are lifted.
  Value* small;
};

Exponent ReduceExponent(MathBuilder& m, Value* x) {
  llvm::IRBuilder<>& b = m.ir();
  Value* bounded = m.AtMost(x, kExpHighF32, kExpHighF64);
  if (m.HasHardwareScale(x)) {
    Value* small = b.CreateFCmpOLT(x, m.Number(x, kExpLeastF32, kExpLeastF64));
    bounded = b.CreateSelect(small, m.Number(x, 0), bounded);
    return {bounded, ReduceByLn2(m, bounded, 0), small};
  }
  bounded = m.AtLeast(bounded, kExpLowF32, kExpLowF64);
  Value* small = b.CreateFCmpOLT(x, m.Number(x, 0));
  // 2^(n − 1), because 2^n may overflow where the result does not.
  Value* round = b.CreateSelect(small, RoundWithBias(m, x, LiftedBias(x) - 1),
                                RoundWithBias(m, x, BiasOf(x) - 1));
  return {bounded, ReduceByLn2(m, bounded, round), small};
}

// Returns significand · 2^n, rounded once, with hardware scale, else significand · 2^(n − 1).
Value* TimesPowerOfTwo(MathBuilder& m, Value* significand, const Exponent& exponent) {
  if (!m.HasHardwareScale(significand))
    return Unlift(m, m.Mul(significand, PowerOfTwo(m, exponent.reduced.bits)), exponent.small);
  return m.ir().CreateSelect(exponent.small, m.Number(significand, 0),
                             m.ScaleByHardware(significand, exponent.reduced.n));
}

}  // namespace

Value* ExpOfSum(MathBuilder& m, Value* high, Value* low) {
  const Exponent exponent = ReduceExponent(m, high);
  Value* inside = m.ir().CreateFCmpOEQ(exponent.bounded, high);
  low = m.ir().CreateSelect(inside, low, m.Number(high, 0));
  Value* n = exponent.reduced.n;
  // The first difference is exact. The errors of the sums are added to the last term.
  Value* difference = m.Fma(n, m.Number(high, -kLn2HighF32, -kLn2HighF64), exponent.bounded);
  low = m.Fma(n, m.Number(high, -kLn2LowF32, -kLn2LowF64), low);
  Value* r = m.Add(difference, low);
  Value* one = m.Number(high, 1);
  Value* sum = m.Add(one, r);
  Value* lost = m.Add(m.Sub(r, m.Sub(sum, one)), m.Sub(low, m.Sub(r, difference)));
  Value* tail = m.Fma(m.Mul(r, r), m.Polynomial(r, kExpm1F32, kExpm1F64), lost);
  Value* power = m.Add(sum, tail);
  return TimesPowerOfTwo(m, m.HasHardwareScale(high) ? power : m.Add(power, power), exponent);
}

Value* Exp(MathBuilder& m, Value* x) {
  const auto any = [&]() -> Value* {
    const Exponent exponent = ReduceExponent(m, x);
    Value* r = exponent.reduced.r;
    if (m.HasHardwareScale(x)) return TimesPowerOfTwo(m, ExpOfReduced(m, r), exponent);
    Value* two = m.Number(x, 2);
    Value* doubled = m.Fma(m.Fma(m.Polynomial(r, kTwiceExpm1F32, kTwiceExpm1F64), r, two), r, two);
    return TimesPowerOfTwo(m, doubled, exponent);
  };
  return m.IfSmall(x, kUsualF32, kUsualF64, [&] { return UsualExp(m, x); }, any);
}

Value* Sigmoid(MathBuilder& m, Value* x) {
  Value* one = m.Number(x, 1);
  const auto any = [&] {
    const Logistic logistic = LogisticOf(m, x, one, kExpLowF32, kExpLowF64);
    return Unlift(m, logistic.quotient, logistic.lifted);
  };
  return m.IfSmall(x, kUsualF32, kUsualF64, [&] { return UsualLogistic(m, x, one); }, any);
}

Value* Silu(MathBuilder& m, Value* x) {
  const auto any = [&] {
    llvm::IRBuilder<>& b = m.ir();
    Value* vanishes = b.CreateFCmpOLT(x, m.Number(x, kSiluLeastF32, kSiluLeastF64));
    // The product of 0 and −∞ is NaN, whose exponent must stay.
    Value* numerator = m.Mul(m.Abs(x), b.CreateSelect(vanishes, m.Number(x, 0), m.Number(x, 1)));
    const Logistic logistic = LogisticOf(m, x, numerator, kSiluLowF32, kSiluLowF64);
    return WithSignOf(
        m, x, Unlift(m, logistic.quotient, b.CreateAnd(logistic.lifted, b.CreateNot(vanishes))));
  };
  return m.IfSmall(x, kUsualF32, kUsualF64, [&] { return UsualLogistic(m, x, x); }, any);
}

Value* TimesSigmoid(MathBuilder& m, Value* factor, Value* x) {
  // In two steps, so that neither the product with a large number nor that with a small one leaves
  // the range if the result does not.
  const auto any = [&] {
    llvm::IRBuilder<>& b = m.ir();
    Value* one = m.Number(x, 1);
    const Logistic logistic = LogisticOf(m, x, one, kExpLowF32, kExpLowF64);
    Value* vanishes = b.CreateFCmpOLT(x, m.Number(x, kExpLeastF32, kExpLeastF64));
    Value* quotient = b.CreateSelect(vanishes, m.Number(x, 0), logistic.quotient);
    Value* small = b.CreateAnd(logistic.lifted,
                               b.CreateFCmpOLT(quotient, m.Number(x, kSmallestF32, kSmallestF64)));
    Value* first = b.CreateSelect(small, m.Number(x, 1 / kSmallestF32, 1 / kSmallestF64),
                                  b.CreateSelect(logistic.lifted, LiftInverse(m, x), one));
    Value* second = b.CreateSelect(small, m.Number(x, 0x1p-60), one);
    return m.Mul(m.Mul(factor, m.Mul(quotient, first)), second);
  };
  return m.IfSmall(
      x, kModerate, kModerate, [&] { return m.Mul(factor, UsualLogistic(m, x, m.Number(x, 1))); },
      any);
}

// With m = e^−2|x| − 1 = 2^n·(e^r − 1) + (2^n − 1): −m / (2 + m).
Value* Tanh(MathBuilder& m, Value* x) {
  Value* a = m.AtMost(m.Abs(x), kTanhEndF32, kTanhEndF64);
  const Reduced reduced = ReduceByLn2(m, m.Mul(a, m.Number(x, -2)), BiasOf(x));
  Value* scale = PowerOfTwo(m, reduced.bits);
  Value* minus = m.Fma(Expm1OfReduced(m, reduced.r), scale, m.Sub(scale, m.Number(x, 1)));
  // A summand too small to matter is left out, because its square would be denormal.
  Value* matters = m.ir().CreateFCmpOLT(minus, m.Number(x, -0x1p-40, -0x1p-70));
  Value* summand = m.ir().CreateSelect(matters, minus, m.Number(x, 0));
  return m.CopySign(m.DivideBySum(minus, m.Number(x, 2), summand), x);
}

}  // namespace hone::codegen
