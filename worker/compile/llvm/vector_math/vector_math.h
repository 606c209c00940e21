#ifndef HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_VECTOR_MATH_H_
#define HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_VECTOR_MATH_H_

#include "common/ir/expr.h"
#include "worker/compile/llvm/vector_math/math_builder.h"

namespace hone::codegen {

// Elementary functions: range reduction and minimax polynomials, without tables or calls (a call
// would spill every vector register). Operands are float, double, or vectors of them of any width;
// scalars and vectors give the same bits. Largest errors found by
// tests/worker/compile/vector_math_test.cc, in ulp of the exact result and including denormal
// results, with the limit that the test asserts:
//
//              f32           f64
//   exp        0.89 ≤ 1      0.91 ≤ 1      overflow gives ∞, underflow denormals and 0
//   log        0.79 ≤ 1      0.78 ≤ 1      log 0 = −∞; NaN for negative numbers
//   tanh       1.86 ≤ 2      2.05 ≤ 2.5
//   erf        1.12 ≤ 1.5    1.04 ≤ 1.5
//   normal_cdf 3.00 ≤ 3.5    2.91 ≤ 3.5    accurate in both tails
//   sigmoid    2.13 ≤ 2.5    2.00 ≤ 2.5    accurate at both ends
//   rsqrt      1.48 ≤ 1.5    1.50 ≤ 1.5    ±∞ for ±0
//   pow        0.50 ≤ 0.502  0.75 ≤ 1      as in C for special values (power_test.cc)
//
// NaN gives NaN; infinities give the limits. tanh and erf keep the sign of −0. f32 exp takes 14
// instructions per vector with AVX-512. With AVX2, exp, sigmoid, silu and y·sigmoid(x) have a
// branch: if no lane is so large that a result may be denormal, 0 or ∞, exp takes 17 instructions.
// Both sides give the same bits (MathBuilder::IfSmall). All other code is straight-line.
//
// No operand or intermediate result is denormal unless the argument is: such an operation takes
// some CPUs hundreds of cycles. Denormal results take none either, except one with AVX-512 (exp,
// pow) and for products of a small argument.
//
// The operators gelu and silu (common/operator/row_operators.cc) are computed as functions of their
// own (expr_emitter.cc). Both are within 4.5 ulp (tests/worker/compile/activation_test.cc).
//
// Methods: reduction by multiples of ln 2 in two parts (Cody and Waite, Software Manual for the
// Elementary Functions, 1980; Muller et al., Handbook of Floating-Point Arithmetic, 2nd ed.,
// chapter 10; Muller, Elementary Functions, 3rd ed.). fit_coefficients.py computes the
// coefficients.
//
// Emits the function of a unary operation. Returns nullptr if the operation is not such a function.
llvm::Value* EmitFunction(ir::Op op, MathBuilder& m, llvm::Value* x);
// Whether the operation is such a function, or pow.
bool IsFunction(ir::Op op);

llvm::Value* Exp(MathBuilder& m, llvm::Value* x);
llvm::Value* Log(MathBuilder& m, llvm::Value* x);
llvm::Value* Tanh(MathBuilder& m, llvm::Value* x);
llvm::Value* Erf(MathBuilder& m, llvm::Value* x);
// The distribution function of the standard normal distribution, Φ(x) = erfc(−x/√2) / 2.
llvm::Value* NormalCdf(MathBuilder& m, llvm::Value* x);
// x·Φ(x). NaN for −∞, as for the product.
llvm::Value* Gelu(MathBuilder& m, llvm::Value* x);
llvm::Value* Sigmoid(MathBuilder& m, llvm::Value* x);
// x·sigmoid(x). NaN for −∞, as for the product.
llvm::Value* Silu(MathBuilder& m, llvm::Value* x);
// The product of a number and sigmoid(x).
llvm::Value* TimesSigmoid(MathBuilder& m, llvm::Value* factor, llvm::Value* x);
// x to the power of y, as in C.
llvm::Value* Pow(MathBuilder& m, llvm::Value* x, llvm::Value* y);

// Divides a vector by a scalar, by the divider where that is fast (Machine::DividesQuickly), or
// else by the reciprocal, which is emitted where the divisor is computed. The result is rounded
// correctly (Markstein, 1990); by the reciprocal, with an error of 1 ulp if the quotient is
// denormal or the divisor's significand is all ones. A quotient of 0 has the right sign.
llvm::Value* DivideByUniform(MathBuilder& m, llvm::Value* numerators, llvm::Value* divisor);

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_VECTOR_MATH_H_
