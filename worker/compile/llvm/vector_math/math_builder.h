#ifndef HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_MATH_BUILDER_H_
#define HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_MATH_BUILDER_H_

#include "absl/types/span.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "worker/compile/llvm/machine.h"

namespace hone::codegen {

// The registers that hold the argument of an elementary function at a time. The steps of a function
// wait for each other, so some registers at once are quicker than one, but the intermediate results
// of many do not fit.
inline constexpr int kFunctionRegisters = 4;

// Emits the operations that elementary functions are made of, at the builder's position. Operands
// are float, double, or vectors of them of any width. Where a function takes two constants, the
// first is for f32 and the second for f64.
class MathBuilder {
 public:
  using Value = llvm::Value;

  // `builder` and `machine` must outlive this object.
  MathBuilder(llvm::IRBuilder<>& builder, const Machine& machine)
      : b_(builder), machine_(machine) {}

  llvm::IRBuilder<>& ir() { return b_; }
  static bool IsF64(Value* x) { return x->getType()->getScalarType()->isDoubleTy(); }

  // A constant of the type of `like`, and an integer as wide as the elements of `like`.
  static Value* Number(Value* like, double value) {
    return llvm::ConstantFP::get(like->getType(), value);
  }
  static Value* Number(Value* like, double f32, double f64) {
    return Number(like, IsF64(like) ? f64 : f32);
  }
  Value* Bits(Value* like, uint64_t value);
  Value* ToBits(Value* x) { return b_.CreateBitCast(x, Bits(x, 0)->getType()); }

  Value* Add(Value* a, Value* b) { return b_.CreateFAdd(a, b); }
  Value* Sub(Value* a, Value* b) { return b_.CreateFSub(a, b); }
  Value* Mul(Value* a, Value* b) { return b_.CreateFMul(a, b); }
  Value* Div(Value* a, Value* b) { return b_.CreateFDiv(a, b); }
  Value* Neg(Value* x) { return b_.CreateFNeg(x); }
  Value* Fma(Value* a, Value* b, Value* c) {
    return b_.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
  }
  Value* Abs(Value* x) { return b_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x); }
  Value* CopySign(Value* magnitude, Value* sign) {
    return b_.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
  }
  // Returns the smaller / larger of a bound and x; NaN stays NaN. One vminps / vmaxps.
  Value* AtMost(Value* x, double f32, double f64);
  Value* AtLeast(Value* x, double f32, double f64);
  // c[0] + c[1]·x + …, by Horner's rule.
  Value* Polynomial(Value* x, absl::Span<const double> f32, absl::Span<const double> f64);
  // Returns numerator / (large + small) with one final rounding. REQUIRES: |large| ≥ |small|. The
  // error of the sum is known exactly (Dekker's fast two-sum). The divider is the bottleneck, so
  // the correction costs little.
  Value* DivideBySum(Value* numerator, Value* large, Value* small);

  // Returns f(x) or f(x, y), computed for kFunctionRegisters at a time.
  Value* InParts(Value* x, Value* (*f)(MathBuilder& m, Value* x));
  Value* InParts(Value* x, Value* y, Value* (*f)(MathBuilder& m, Value* x, Value* y));
  bool DividesQuickly(Value* x) const { return machine_.DividesQuickly(x->getType()); }

  // Whether some lanes of the arguments are arbitrary, because only the others are stored.
  void set_is_masked(bool is_masked) { is_masked_ = is_masked; }

  // Returns usual() if |x| is at most a bound in all lanes, else any(), which must give the same
  // bits in the lanes where it is. Only any() is emitted where a branch does not pay.
  Value* IfSmall(Value* x, double f32, double f64, llvm::function_ref<Value*()> usual,
                 llvm::function_ref<Value*()> any);

  // Whether ScaleByHardware supports x's type.
  bool HasHardwareScale(Value* x) const { return machine_.Scales(x->getType()); }
  // Returns value · 2^exponent, rounded once, with one instruction.
  Value* ScaleByHardware(Value* value, Value* exponent) {
    return machine_.EmitScale(b_, value, exponent);
  }

 private:
  llvm::IRBuilder<>& b_;
  const Machine& machine_;
  bool is_masked_ = false;
  bool all_lanes_used_ = true;  // by the argument of the function that is emitted
};

}  // namespace hone::codegen

#endif  // HONE_WORKER_COMPILE_LLVM_VECTOR_MATH_MATH_BUILDER_H_
