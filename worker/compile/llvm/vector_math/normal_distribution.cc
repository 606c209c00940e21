// The normal distribution function: Φ(−z) = e^(−z²/2) · P(t) / (z + c) for z ≥ 0, where P is a
// polynomial in t = z / (z + c) − ½, and Φ(z) = 1 − Φ(−z).
#include "worker/compile/llvm/vector_math/exponential.h"
#include "worker/compile/llvm/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

namespace {

// Slightly beyond the limit where z · Φ(−z) is less than half of the smallest denormal.
constexpr double kEndF32 = 14.4, kEndF64 = 38.6;
// The largest z where it is not.
constexpr double kLastGeluF32 = 0x1.cb64e8p+3, kLastGeluF64 = 0x1.34a4208ec1ea3p+5;
// The square of a smaller number does not matter, and may be denormal.
constexpr double kTinyF32 = 0x1p-40, kTinyF64 = 0x1p-60;
// c has few digits, so the rounding error of z + c is known exactly in either order of the
// operands.
constexpr double kShift = 3.875;

// Φ(−z) · e^(z²/2) · (z + c) in t, weighted by its reciprocal: 0.41 and 0.36 ulp.
constexpr double kTailF32[] = {0x1.817ab2p-1, -0x1.325e8ep+0, 0x1.7b54d4p+0,  -0x1.5a5b24p+0,
                               0x1.8e9156p-1, -0x1.689edap-4, -0x1.0bdfbap-2, 0x1.172f6ep-3,
                               0x1.79a9cap-4, -0x1.fee476p-6};
constexpr double kTailF64[] = {
    0x1.817ab1717d8a4p-1, -0x1.325e917e1047bp+0, 0x1.7b54f6ab2d0d1p+0,  -0x1.5a59c19625df4p+0,
    0x1.8e821b63418cep-1, -0x1.6bbc7a34458dcp-4, -0x1.09f81527e2142p-2, 0x1.2e9bab8c5335ep-3,
    0x1.621dcd452218dp-4, -0x1.8dd309b6d65c7p-4, -0x1.59b2fc1a7b8a6p-5, 0x1.f53409ae8ce44p-5,
    0x1.0f3490a7d6c1ap-5, -0x1.34d40d78595bdp-5, -0x1.0cf6c9f3cfca1p-5, 0x1.3b51e38d0fb24p-6,
    0x1.08adfd3527a46p-5, -0x1.89f838d331e06p-9, -0x1.acd6bda793171p-6, -0x1.10069a3dabc91p-7,
    0x1.9a8182b2cb92ap-7, 0x1.0ecadfa80d73cp-7};

// Φ(x). For x ≥ 0 it is 1 − Φ(−x); else the value is lifted. Where x is less than −kEnd, the value
// is that of −kEnd.
struct Cdf {
  Value* value;
  Value* lifted;  // for which lanes
};

Cdf LiftedCdf(MathBuilder& m, Value* x) {
  Value* z = m.AtLeast(m.AtMost(m.Abs(x), kEndF32, kEndF64), kTinyF32, kTinyF64);
  // 1 / (z + c) is `reciprocal` · (1 + rest): the errors of the sum and the division are known.
  Value* one = m.Number(x, 1);
  Value* shift = m.Number(x, kShift);
  Value* sum = m.Add(z, shift);
  Value* minus_lost = m.Sub(m.Sub(sum, shift), z);
  Value* reciprocal = m.Div(one, sum);
  Value* rest = m.Fma(reciprocal, minus_lost, m.Fma(m.Neg(reciprocal), sum, one));
  Value* t = m.Fma(z, m.Fma(reciprocal, rest, reciprocal), m.Number(x, -0.5));
  Value* ratio = m.Mul(m.Polynomial(t, kTailF32, kTailF64), reciprocal);
  // The error of the square is also corrected: a rounded z² would cost hundreds of ulp at the far
  // end. Both corrections are small compared with r, and e^(r + rest) = e^r · (1 + rest).
  Value* square = m.Mul(z, z);
  Value* lost = m.Fma(z, z, m.Neg(square));
  const Reduced reduced = ReduceByLn2(m, m.Mul(square, m.Number(x, -0.5)), LiftedBias(x));
  Value* r = m.Add(reduced.r, m.Fma(lost, m.Number(x, -0.5), rest));
  Value* tail = m.Mul(m.Fma(ratio, Expm1OfReduced(m, r), ratio), PowerOfTwo(m, reduced.bits));
  // A product that is only part of an fma does not underflow.
  Value* above = m.Fma(tail, m.Neg(LiftInverse(m, x)), one);
  Value* negative = m.ir().CreateFCmpOLT(x, m.Number(x, 0));
  return {m.ir().CreateSelect(negative, tail, above), negative};
}

}  // namespace

Value* NormalCdf(MathBuilder& m, Value* x) {
  const Cdf cdf = LiftedCdf(m, x);
  return Unlift(m, cdf.value, cdf.lifted);
}

Value* Gelu(MathBuilder& m, Value* x) {
  const Cdf cdf = LiftedCdf(m, x);
  Value* vanishes = m.ir().CreateFCmpOLT(x, m.Number(x, -kLastGeluF32, -kLastGeluF64));
  return UnliftProduct(m, x, cdf.value, cdf.lifted, vanishes);
}

}  // namespace hone::codegen
