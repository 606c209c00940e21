#ifndef HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_EXPONENTIAL_H_
#define HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_EXPONENTIAL_H_

#include "worker/compile/llvm/vector_math/math_builder.h"

// The parts of exp that other functions use, too.
namespace hone::codegen {

// x = n·ln 2 + r with |r| ≤ ln 2 / 2.
struct Reduced {
  llvm::Value* r;
  llvm::Value* n;     // an integer, in the type of x
  llvm::Value* bits;  // n + bias in the low bits of an integer
};
Reduced ReduceByLn2(MathBuilder& m, llvm::Value* x, int bias);

// The bias of the exponents of x's format.
inline int BiasOf(llvm::Value* x) { return MathBuilder::IsF64(x) ? 1023 : 127; }

// e^r and e^r − 1 for |r| ≤ ln 2 / 2.
llvm::Value* ExpOfReduced(MathBuilder& m, llvm::Value* r);
llvm::Value* Expm1OfReduced(MathBuilder& m, llvm::Value* r);

// Returns e^(high + low). REQUIRES |low| < 2^-20, unless the result is 0 or ∞.
llvm::Value* ExpOfSum(MathBuilder& m, llvm::Value* high, llvm::Value* low);

// Returns 2^n. The low bits hold n + bias with the format's bias; the result is normal.
llvm::Value* PowerOfTwo(MathBuilder& m, llvm::Value* bits);

// Results that may be denormal are computed with a factor, because CPUs take up to hundreds of
// cycles for each operand or result that is denormal or underflows to 0. For n ≥ −160 in f32, and
// −1085 in f64, factor · 2^n is at least 2^-85.
inline constexpr int kLiftF32 = 100, kLiftF64 = 1000;  // exponents
llvm::Value* LiftInverse(MathBuilder& m, llvm::Value* like);
// Removes the factor from the lanes of `lifted`. Results that are denormal, or 0, are rounded once,
// without an operation on denormals. REQUIRES: magnitude ≥ 0, or NaN in a lane that is not lifted;
// lifted lanes are at most 1 without their factor.
llvm::Value* Unlift(MathBuilder& m, llvm::Value* magnitude, llvm::Value* lifted);
// Returns x·positive in the same way; 0·x where `vanishes` is true. The conditions are those of
// Unlift(|x|·positive).
llvm::Value* UnliftProduct(MathBuilder& m, llvm::Value* x, llvm::Value* positive,
                           llvm::Value* lifted, llvm::Value* vanishes);
// With this bias, PowerOfTwo returns factor · 2^n.
inline int LiftedBias(llvm::Value* x) {
  return BiasOf(x) + (MathBuilder::IsF64(x) ? kLiftF64 : kLiftF32);
}

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_EXPONENTIAL_H_
