#ifndef HONE_COMMON_IR_F64_TERM_H_
#define HONE_COMMON_IR_F64_TERM_H_

#include <limits>

#include "common/ir/expr.h"

namespace hone::ir {

// An f64 expression with arithmetic operators, for building expressions with the formulas of
// error_bound.h.
struct F64Term {
  ExprPool* pool;
  ExprId id;
};

inline F64Term Constant(F64Term like, double value) {
  return {like.pool, like.pool->Const(DType::kF64, value)};
}
inline F64Term ConstantLike(F64Term like, double value) { return Constant(like, value); }
inline F64Term Binary(Op op, F64Term a, F64Term b) {
  return {a.pool, a.pool->Binary(op, a.id, b.id)};
}
inline F64Term Unary(Op op, F64Term a) { return {a.pool, a.pool->Unary(op, a.id)}; }

inline F64Term operator+(F64Term a, F64Term b) { return Binary(Op::kAdd, a, b); }
inline F64Term operator+(double a, F64Term b) { return Constant(b, a) + b; }
inline F64Term operator-(F64Term a, F64Term b) { return Binary(Op::kSub, a, b); }
inline F64Term operator-(F64Term a, double b) { return a - Constant(a, b); }
inline F64Term operator*(F64Term a, F64Term b) { return Binary(Op::kMul, a, b); }
inline F64Term operator*(double a, F64Term b) { return Constant(b, a) * b; }
inline F64Term operator*(F64Term a, double b) { return a * Constant(a, b); }
inline F64Term operator/(F64Term a, F64Term b) { return Binary(Op::kDiv, a, b); }

// Whether it is the constant 0.
inline bool IsZero(F64Term a) {
  const Expr& expr = (*a.pool)[a.id];
  return expr.op == Op::kConst && expr.value == 0;
}
inline F64Term Larger(F64Term a, F64Term b) { return Binary(Op::kMax, a, b); }
inline F64Term Smaller(F64Term a, F64Term b) { return Binary(Op::kMin, a, b); }
inline F64Term Absolute(F64Term a) { return Unary(Op::kAbs, a); }
inline F64Term Exponential(F64Term a) { return Unary(Op::kExp, a); }
inline F64Term SquareRoot(F64Term a) { return Unary(Op::kSqrt, a); }
inline F64Term Logarithm(F64Term a) { return Unary(Op::kLog, a); }
inline F64Term Power(F64Term a, F64Term b) { return Binary(Op::kPow, a, b); }
inline F64Term Whole(Op op, F64Term a) { return Unary(op, a); }
inline F64Term Converted(DType dtype, F64Term a) {
  return {a.pool, a.pool->Cast(DType::kF64, a.pool->Cast(dtype, a.id))};
}
// `then` where the condition holds, else `otherwise`.
inline F64Term Where(ExprId condition, F64Term then, F64Term otherwise) {
  return {then.pool, then.pool->Select(condition, then.id, otherwise.id)};
}
inline F64Term SizeOf(F64Term a) {
  const F64Term size = Absolute(a);
  const F64Term infinity = Constant(a, std::numeric_limits<double>::infinity());
  return Where(Binary(Op::kLess, size, infinity).id, size, Constant(a, 0));
}
inline F64Term IfZero(F64Term a, F64Term then, F64Term otherwise) {
  return Where(Binary(Op::kEqual, a, Constant(a, 0)).id, then, otherwise);
}
inline F64Term IfLess(F64Term a, F64Term b, F64Term then, F64Term otherwise) {
  return Where(Binary(Op::kLess, a, b).id, then, otherwise);
}

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_F64_TERM_H_
