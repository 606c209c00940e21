// erf: an odd polynomial near 0; 1 − e^P(|x|) further out, where P fits log(1 − erf).
#include "worker/compile/llvm/vector_math/exponential.h"
#include "worker/compile/llvm/vector_math/vector_math.h"

namespace hone::codegen {

using llvm::Value;

namespace {

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
  Value* far =
      m.CopySign(m.Fma(ExpOfReduced(m, reduced.r, Rounding::kFast), rest, m.Number(x, 1)), x);
  Value* is_near = m.ir().CreateFCmpOLT(magnitude, m.Number(x, 0.85, 0.9));
  return m.ir().CreateSelect(is_near, near, far);
}

}  // namespace hone::codegen
