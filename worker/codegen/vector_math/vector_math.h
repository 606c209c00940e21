#ifndef HONE_WORKER_CODEGEN_VECTOR_MATH_VECTOR_MATH_H_
#define HONE_WORKER_CODEGEN_VECTOR_MATH_VECTOR_MATH_H_

#include "absl/types/span.h"
#include "common/target/target.h"
#include "llvm/IR/IRBuilder.h"

namespace hone::codegen {

// Elementary functions as straight code: range reduction and minimax polynomials, without branches,
// tables or calls (a call would spill every vector register). Each takes and gives float, double,
// or a vector of them of any width; scalars and vectors give the same bits. Largest errors found by
// tests/worker/codegen/vector_math_test.cc, in ulp of the exact result, denormal results included,
// with the limit that the test asserts:
//
//              f32           f64
//   exp        0.89 ≤ 1      0.91 ≤ 1      overflow gives ∞, underflow denormals and 0
//   log        0.79 ≤ 1      0.78 ≤ 1      log 0 = −∞, of negative numbers NaN
//   tanh       1.86 ≤ 2      2.05 ≤ 2.5
//   erf        1.12 ≤ 1.5    1.04 ≤ 1.5
//   normal_cdf 3.00 ≤ 3.5    2.91 ≤ 3.5    both tails, denormal results included
//   sigmoid    1.46 ≤ 2      1.43 ≤ 2      right at both ends, denormal results included
//   rsqrt      1.48 ≤ 1.5    1.50 ≤ 1.5    of 0: ∞ with its sign
//
// NaN gives NaN, infinities the limits. −0 keeps its sign in tanh and erf. f32 exp is 13
// instructions a vector with AVX-512 and 18 with AVX2.
//
// The operators gelu and silu are compositions (common/operator/formula.h). Both are within 4.5 ulp
// (tests/worker/codegen/activation_test.cc), with one exception: where normal_cdf is denormal, its
// error is multiplied by |x|, so gelu is within 10 ulp in f32 and 22 in f64 there.
//
// Methods: reduction by multiples of ln 2 in two parts (Cody and Waite, Software Manual for the
// Elementary Functions, 1980; Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed.,
// chapter 10; Muller, Elementary Functions, 3rd ed.). The coefficients are our own fits:
// fit_coefficients.py prints them.
class VectorMath {
 public:
  // The builder's place is where code goes; both outlive this.
  VectorMath(llvm::IRBuilder<>& builder, const target::Target& target);

  llvm::Value* Exp(llvm::Value* x);
  llvm::Value* Log(llvm::Value* x);
  llvm::Value* Tanh(llvm::Value* x);
  llvm::Value* Erf(llvm::Value* x);
  // The distribution function of the standard normal distribution, Φ(x) = erfc(−x/√2) / 2.
  llvm::Value* NormalCdf(llvm::Value* x);
  llvm::Value* Sigmoid(llvm::Value* x);
  llvm::Value* Rsqrt(llvm::Value* x);
  // A vector by one number: rounded right as a division is (Markstein, 1990), but 1 ulp where the
  // quotient or the rest is denormal (numerators below 2^-100 in f32) or the divisor's significand
  // is all ones. A quotient of 0 has its sign. The scalar part is put where the divisor is
  // computed.
  llvm::Value* DivideByUniform(llvm::Value* numerators, llvm::Value* divisor);

 private:
  // x = n·ln 2 + r with |r| ≤ ln 2 / 2.
  struct Reduced {
    llvm::Value* r;
    llvm::Value* n;     // a whole number, in the type of x
    llvm::Value* bits;  // n + bias in the low bits of an integer
  };
  Reduced ReduceByLn2(llvm::Value* x, int bias);
  // The same with the bias that TimesPowerOfTwo needs.
  Reduced ReduceByLn2(llvm::Value* x);
  // kFast: the last two steps of Horner's rule round; kOnce: one of them does, for an instruction
  // more.
  enum class Rounding { kFast, kOnce };
  // e^r and e^r − 1 for |r| ≤ ln 2 / 2.
  llvm::Value* ExpOfReduced(llvm::Value* r, Rounding rounding);
  llvm::Value* Expm1OfReduced(llvm::Value* r);
  // 2^n for n + bias in the low bits, where bias is the format's and the result is normal.
  llvm::Value* PowerOfTwo(llvm::Value* bits);
  // significand · 2^n, rounded once where the result is denormal. REQUIRES a `reduced` of
  // ReduceByLn2(x).
  llvm::Value* TimesPowerOfTwo(llvm::Value* significand, const Reduced& reduced);
  // e^x for x that is at most slightly beyond where e^x overflows or vanishes.
  llvm::Value* ExpOfClamped(llvm::Value* x, Rounding rounding);
  // numerator / (large + small) with one rounding at the end; REQUIRES |large| ≥ |small|. What the
  // sum loses is known exactly (Dekker's fast two-sum); the divider is the bottleneck, so that
  // correcting costs little.
  llvm::Value* DivideBySum(llvm::Value* numerator, llvm::Value* large, llvm::Value* small);
  // Whether ScaleByHardware takes values of x's type.
  bool HasHardwareScale(llvm::Value* x) const {
    return hardware_scale_bits_ > 0 && x->getType()->isVectorTy();
  }
  llvm::Value* ScaleByHardware(llvm::Value* value, llvm::Value* exponent);

  llvm::Value* LogF32(llvm::Value* f, llvm::Value* k);
  llvm::Value* LogF64(llvm::Value* f, llvm::Value* k);

  // The smaller / larger of a bound and x; NaN stays NaN. One vminps / vmaxps.
  llvm::Value* AtMost(llvm::Value* x, double bound);
  llvm::Value* AtLeast(llvm::Value* x, double bound);
  // c[0] + c[1]·x + …, by Horner's rule.
  llvm::Value* Polynomial(llvm::Value* x, absl::Span<const double> c);
  llvm::Value* Fma(llvm::Value* a, llvm::Value* b, llvm::Value* c);
  llvm::Value* Abs(llvm::Value* x);
  llvm::Value* CopySign(llvm::Value* magnitude, llvm::Value* sign);
  llvm::Value* Number(llvm::Value* like, double value);
  llvm::Value* Bits(llvm::Value* like,
                    uint64_t value);  // an integer of the width of `like`'s elements
  llvm::Value* ToBits(llvm::Value* x);
  static bool IsF64(llvm::Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }

  llvm::IRBuilder<>& b_;
  int hardware_scale_bits_ = 0;         // widest vector that VSCALEF takes here; 0: none
  bool hardware_scale_narrow_ = false;  // also vectors of 128 and 256 bits
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_CODEGEN_VECTOR_MATH_VECTOR_MATH_H_
