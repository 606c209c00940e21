#ifndef HONE_WORKER_CODEGEN_VECTOR_MATH_VECTOR_MATH_H_
#define HONE_WORKER_CODEGEN_VECTOR_MATH_VECTOR_MATH_H_

#include "absl/types/span.h"
#include "common/target/target.h"
#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

// Elementary functions as straight-line code: range reduction and minimax polynomials, without
// branches, tables or calls (a call would spill every vector register). Operands are float, double,
// or vectors of them of any width; scalars and vectors give the same bits. Largest errors found by
// tests/worker/codegen/vector_math_test.cc, in ulp of the exact result and including denormal
// results, with the limit that the test asserts:
//
//              f32           f64
//   exp        0.89 ≤ 1      0.91 ≤ 1      overflow gives ∞, underflow denormals and 0
//   log        0.79 ≤ 1      0.78 ≤ 1      log 0 = −∞; NaN for negative numbers
//   tanh       1.86 ≤ 2      2.05 ≤ 2.5
//   erf        1.12 ≤ 1.5    1.04 ≤ 1.5
//   normal_cdf 3.00 ≤ 3.5    2.91 ≤ 3.5    accurate in both tails
//   sigmoid    1.46 ≤ 2      1.43 ≤ 2      accurate at both ends
//   rsqrt      1.48 ≤ 1.5    1.50 ≤ 1.5    ±∞ for ±0
//
// NaN gives NaN; infinities give the limits. tanh and erf keep the sign of −0. f32 exp takes 13
// instructions per vector with AVX-512 and 18 with AVX2.
//
// The operators gelu and silu are compositions (common/operator/formula.h). Both are within 4.5 ulp
// (tests/worker/codegen/activation_test.cc), with one exception: where normal_cdf is denormal, its
// error is multiplied by |x|, so gelu is within 10 ulp in f32 and 22 in f64 there.
//
// Methods: reduction by multiples of ln 2 in two parts (Cody and Waite, Software Manual for the
// Elementary Functions, 1980; Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed.,
// chapter 10; Muller, Elementary Functions, 3rd ed.). fit_coefficients.py computes the
// coefficients.
class VectorMath {
 public:
  // Code is emitted at the builder's position. `builder` and `target` must outlive this object.
  VectorMath(llvm::IRBuilder<>& builder, const target::Target& target);

  llvm::Value* Exp(llvm::Value* x);
  llvm::Value* Log(llvm::Value* x);
  llvm::Value* Tanh(llvm::Value* x);
  llvm::Value* Erf(llvm::Value* x);
  // The distribution function of the standard normal distribution, Φ(x) = erfc(−x/√2) / 2.
  llvm::Value* NormalCdf(llvm::Value* x);
  llvm::Value* Sigmoid(llvm::Value* x);
  llvm::Value* Rsqrt(llvm::Value* x);
  // Divides a vector by a scalar. The result is rounded correctly (Markstein, 1990), except for an
  // error of 1 ulp if the quotient or the remainder is denormal (numerators below 2^-100 in f32) or
  // the divisor's significand is all ones. A quotient of 0 has the right sign. The scalar part is
  // emitted where the divisor is computed.
  llvm::Value* DivideByUniform(llvm::Value* numerators, llvm::Value* divisor);

 private:
  // x = n·ln 2 + r with |r| ≤ ln 2 / 2.
  struct Reduced {
    llvm::Value* r;
    llvm::Value* n;     // an integer, in the type of x
    llvm::Value* bits;  // n + bias in the low bits of an integer
  };
  Reduced ReduceByLn2(llvm::Value* x, int bias);
  // The same, with the bias that TimesPowerOfTwo needs.
  Reduced ReduceByLn2(llvm::Value* x);
  // kFast: the last two steps of Horner's rule round; kOnce: only one of them rounds, for one more
  // instruction.
  enum class Rounding { kFast, kOnce };
  // e^r and e^r − 1 for |r| ≤ ln 2 / 2.
  llvm::Value* ExpOfReduced(llvm::Value* r, Rounding rounding);
  llvm::Value* Expm1OfReduced(llvm::Value* r);
  // Returns 2^n. The low bits hold n + bias with the format's bias; the result is normal.
  llvm::Value* PowerOfTwo(llvm::Value* bits);
  // Returns significand · 2^n, rounded once if the result is denormal. REQUIRES: `reduced` comes
  // from ReduceByLn2(x).
  llvm::Value* TimesPowerOfTwo(llvm::Value* significand, const Reduced& reduced);
  // e^x for x that is at most slightly beyond the range where e^x overflows or vanishes.
  llvm::Value* ExpOfClamped(llvm::Value* x, Rounding rounding);
  // Returns numerator / (large + small) with one final rounding. REQUIRES: |large| ≥ |small|. The
  // error of the sum is known exactly (Dekker's fast two-sum). The divider is the bottleneck, so
  // the correction costs little.
  llvm::Value* DivideBySum(llvm::Value* numerator, llvm::Value* large, llvm::Value* small);
  // Whether ScaleByHardware supports x's type.
  bool HasHardwareScale(llvm::Value* x) const {
    return hardware_scale_bits_ > 0 && x->getType()->isVectorTy();
  }
  llvm::Value* ScaleByHardware(llvm::Value* value, llvm::Value* exponent);

  llvm::Value* LogF32(llvm::Value* f, llvm::Value* k);
  llvm::Value* LogF64(llvm::Value* f, llvm::Value* k);

  // Returns the smaller / larger of a bound and x; NaN stays NaN. One vminps / vmaxps.
  llvm::Value* AtMost(llvm::Value* x, double bound);
  llvm::Value* AtLeast(llvm::Value* x, double bound);
  // c[0] + c[1]·x + …, by Horner's rule.
  llvm::Value* Polynomial(llvm::Value* x, absl::Span<const double> c);
  llvm::Value* Fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* Abs(llvm::Value* x);
  llvm::Value* CopySign(llvm::Value* magnitude, llvm::Value* sign);
  llvm::Value* Number(llvm::Value* like, double value);
  llvm::Value* Bits(llvm::Value* like,
                    uint64_t value);  // an integer as wide as the elements of `like`
  llvm::Value* ToBits(llvm::Value* x);
  static bool IsF64(llvm::Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }

  llvm::IRBuilder<>& b_;
  int hardware_scale_bits_ = 0;  // widest vector that VSCALEF supports on this target; 0: none
  bool hardware_scale_narrow_ = false;  // also vectors of 128 and 256 bits
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_VECTOR_MATH_VECTOR_MATH_H_
