// erf: an odd polynomial near 0; 1 − e^P(|x|) further out, where P fits log(1 − erf).
// The normal distribution function: Φ(−z) = e^(−z²/2) · P(t) / (z + c) for z ≥ 0, where P is a
// polynomial in t = z / (z + c) − ½, and Φ(z) = 1 − Φ(−z).
#include "worker/compile/llvm/vector_math/exponential.h"
#include "worker/compile/llvm/vector_math/vector_math.h"

namespace hone::codegen {
namespace {

using llvm::Value;

// erf(x) / x − 1 in x²: 0.09 ulp for |x| ≤ 0.85, 0.16 ulp for |x| ≤ 0.9.
constexpr double kNearF32[] = {0x1.06eba8p-3,  -0x1.81271ap-2, 0x1.ce23dep-4,
                               -0x1.b7220ap-6, 0x1.4b075ep-8,  -0x1.4b1878p-11};
constexpr double kNearF64[] = {
    0x1.06eba8214db69p-3,  -0x1.812746b0379e2p-2,  0x1.ce2f21a0427e2p-4,  -0x1.b82ce31271df7p-6,
    0x1.565bcd0a3214ep-8,  -0x1.c02db3141b80ap-11, 0x1.f9a3062990228p-14, -0x1.f4cf5955481bfp-17,
    0x1.b9b75fbdbb563p-20, -0x1.5d83692a85cebp-23, 0x1.e29e9dc6ec2dep-27, -0x1.d24c63d37f8f3p-31};
// log(1 − erf(x)) on [0.85, 4] and [0.9, 6], weighted by (1 − erf(x)) / erf(x): 0.03 and 0.06 ulp
// of erf.
constexpr double kFarF32[] = {-0x1.dccd7ep-14, -0x1.20c5c4p+0, -0x1.45f0c8p-1, -0x1.abcb06p-4,
                              0x1.70306ep-6,   -0x1.96e898p-9, 0x1.a7dd14p-13};
constexpr double kFarF64[] = {
    -0x1.9609111efb88p-24,  -0x1.20dd64d821341p+0,  -0x1.45f39db9e3728p-1,  -0x1.a4e7aa6a81cf5p-4,
    0x1.3904c1d694d32p-6,   0x1.f2f3053e8cf24p-13,  -0x1.c220611791802p-10, 0x1.35ec844714becp-11,
    -0x1.9abc81740f89dp-18, -0x1.8cb8f842f71efp-14, 0x1.e113ccfdc45b6p-15,  -0x1.6a58e0f1c54d1p-16,
    0x1.94614f4e6290bp-18,  -0x1.5eab4e8e2973bp-20, 0x1.de2b9c62b33bp-23,   -0x1.fdcdd9f9b9db5p-26,
    0x1.a109d1af9e778p-29,  -0x1.f9c870c637b8bp-33, 0x1.ac4deda819f06p-37,  -0x1.c3e4d8906887ap-42,
    0x1.beebb96c8f4fbp-48};

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

Value* Erf(MathBuilder& m, Value* x) {
  Value* magnitude = m.Abs(x);
  // The square of a smaller number does not matter, and may be denormal.
  Value* not_tiny = m.AtLeast(magnitude, 0x1p-40, 0x1p-40);
  Value* square = m.Mul(not_tiny, not_tiny);
  Value* near = m.Fma(x, m.Polynomial(square, kNearF32, kNearF64), x);
  Value* end = m.AtMost(magnitude, 4, 6);  // erf rounds to 1 from here on
  const Reduced reduced = ReduceByLn2(m, m.Polynomial(end, kFarF32, kFarF64), BiasOf(x));
  Value* rest = m.Neg(PowerOfTwo(m, reduced.bits));
  Value* far = m.CopySign(m.Fma(ExpOfReduced(m, reduced.r), rest, m.Number(x, 1)), x);
  Value* is_near = m.ir().CreateFCmpOLT(magnitude, m.Number(x, 0.85, 0.9));
  return m.ir().CreateSelect(is_near, near, far);
}

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
