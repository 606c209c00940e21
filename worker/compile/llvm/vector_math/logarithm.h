#ifndef HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_LOGARITHM_H_
#define HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_LOGARITHM_H_

#include "worker/compile/llvm/vector_math/math_builder.h"

// The parts of log that pow uses, too.
namespace hone::codegen {

// x = 2^k · (1 + f) with √½ ≤ 1 + f < √2, where f is exact and k is an integer in the type of x.
struct PowerAndFraction {
  llvm::Value *f, *k;
};
// The result is arbitrary unless x is positive and finite.
PowerAndFraction SplitPowerOfTwo(MathBuilder& m, llvm::Value* x);

// ln 2 in f64 in two parts. The product of the high part with any exponent is exact.
inline constexpr double kLogOf2HighF64 = 0x1.62e42fee00000p-1;
inline constexpr double kLogOf2LowF64 = 0x1.a39ef35793c76p-33;

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_LOGARITHM_H_
