#ifndef HONE_COMMON_IR_REFERENCE_EXPRS_H_
#define HONE_COMMON_IR_REFERENCE_EXPRS_H_

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/ir/error_bound.h"
#include "common/ir/expr.h"
#include "common/ir/workload.h"

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

// The tensors of a reference, indexed by the original tensors; −1 if there is none.
struct ReferenceTensors {
  explicit ReferenceTensors(size_t tensors)
      : values(tensors, -1), magnitudes(values), roundings(values) {}
  std::vector<BufferId> values, magnitudes;
  std::vector<BufferId> roundings;  // as read by other stages; −1 for 0
};

// The dtype in which a reference computes values of `dtype`: f64 for floats. Integers and booleans
// keep their dtype, because integers wrap and booleans select.
DType ValueDType(DType dtype);

// Translates expressions of a workload into their value, magnitude and rounding in its reference
// (error_bound.h). The formulas repeat their operands, so large operands become separate stages of
// the reference, over the axes that they depend on.
class ReferenceExprs {
 public:
  // All arguments must outlive this object; `to` and `tensors` may grow.
  ReferenceExprs(const Workload& from, const Accuracy& accuracy, const ReferenceTensors& tensors,
                 Workload& to);

  // Creates the axes of a new stage. Later translations map the original axes to them.
  std::vector<Axis> Renamed(const std::vector<Axis>& axes);
  Index Renamed(const Index& index);
  // In ValueDType. Casts still round.
  ExprId Value(ExprId id);
  F64Term F64Value(ExprId id);
  F64Term Magnitude(ExprId id);
  // kNoExpr for 0.
  ExprId Rounding(ExprId id);
  // Bound on the error of a correct kernel. kNoExpr for 0.
  ExprId Error(ExprId id);

  F64Term AsF64(ExprId value) { return {&to_.pool, to_.pool.Cast(DType::kF64, value)}; }
  F64Term F64Constant(double value) { return {&to_.pool, to_.pool.Const(DType::kF64, value)}; }
  F64Term OrZero(ExprId bound) {
    return bound == kNoExpr ? F64Constant(0) : F64Term{&to_.pool, bound};
  }

 private:
  enum class Kind { kValue, kMagnitude, kRounding, kError };
  using Key = std::pair<Kind, ExprId>;
  struct Stored {
    BufferId tensor;
    std::vector<AtomId> axes;  // original variables
  };

  ExprId Build(Kind kind, ExprId id);
  // Builds an expression once per stage; a large expression becomes a separate stage.
  ExprId Bound(Kind kind, ExprId id);
  ExprId BuildMagnitude(ExprId id);
  ExprId BuildRounding(ExprId id);
  ExprId BuildError(ExprId id);
  ExprId RoundingOfCast(const Expr& cast);
  ExprId RoundingOfComparison(const Expr& comparison);
  ExprId RoundingOfSelect(const Expr& select);
  Operands<F64Term> OperandsOf(const Expr& expr, Kind kind);

  ExprId LoadOf(const Expr& expr, const std::vector<BufferId>& tensors);
  ExprId Guarded(const Expr& of, ExprId value, ExprId otherwise);
  ExprId AsStored(const Expr& load, ExprId value);
  ExprId LoadOf(const Stored& stored);
  // nullopt if the expression cannot be a stage: it has no axes or too many points, or it may be
  // evaluated only where the guards of its stage hold.
  std::optional<std::vector<AtomId>> AxesOf(ExprId id) const;
  void Store(const Key& key, std::vector<AtomId> axes);
  int64_t TreeSize(ExprId id);

  const Workload& from_;
  const Accuracy& accuracy_;
  const ReferenceTensors& tensors_;
  Workload& to_;
  std::vector<AtomId> renamed_;    // indexed by the original variables
  std::map<Key, ExprId> built_;    // over the axes of the current stage
  std::map<Key, Stored> stored_;   // expressions that are stages
  std::vector<int64_t> to_sizes_;  // tree sizes of expressions in to_.pool
};

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_REFERENCE_EXPRS_H_
