#ifndef HONE_COMMON_IR_REFERENCE_EXPRS_H_
#define HONE_COMMON_IR_REFERENCE_EXPRS_H_

#include <cstdint>
#include <vector>

#include "common/ir/accuracy.h"
#include "common/ir/f64_term.h"
#include "common/ir/workload.h"

namespace hone::ir {

// The tensors of a reference by the tensors of the original; −1 where there is none.
struct ReferenceTensors {
  explicit ReferenceTensors(size_t tensors)
      : values(tensors, -1), magnitudes(values), roundings(values) {}
  std::vector<BufferId> values, magnitudes;
  std::vector<BufferId> roundings;  // as stages read them; −1 for 0
};

// What floats of a dtype are computed in by a reference: f64. Integers wrap and booleans choose, so
// that both keep their own.
DType ValueDType(DType dtype);

// Translates expressions of a workload into those of its reference: into their value, magnitude and
// rounding (error_bound.h).
class ReferenceExprs {
 public:
  // All must outlive this object; `to` and `tensors` may grow.
  ReferenceExprs(const Workload& from, const Accuracy& accuracy, const ReferenceTensors& tensors,
                 Workload& to);

  // The axes of a new stage. Later translations use them for the original's.
  std::vector<Axis> Renamed(const std::vector<Axis>& axes);
  Index Renamed(const Index& index);

  // In ValueDType. Casts round all the same.
  ExprId Value(ExprId id);
  F64Term F64Value(ExprId id) { return AsF64(Value(id)); }
  F64Term Magnitude(ExprId id);
  // Null expression (kNoExpr) for 0.
  ExprId Rounding(ExprId id);
  // How far a correct kernel may be off: the rounding, and the arithmetic's part of the magnitude.
  // kNoExpr for 0.
  ExprId Error(ExprId id);

  F64Term AsF64(ExprId value) { return {&to_.pool, to_.pool.Cast(DType::kF64, value)}; }
  F64Term F64Constant(double value) { return {&to_.pool, to_.pool.Const(DType::kF64, value)}; }
  F64Term OrZero(ExprId bound) {
    return bound == kNoExpr ? F64Constant(0) : F64Term{&to_.pool, bound};
  }

 private:
  ExprId LoadOf(const Expr& expr, const std::vector<BufferId>& tensors);
  ExprId Stored(const Expr& load, ExprId value);
  ExprId FullRounding(ExprId id);
  ExprId RoundingOfCast(const Expr& cast);
  F64Term ShortenedRounding(ExprId id);
  int64_t TreeSize(ExprId id);

  const Workload& from_;
  const Accuracy& accuracy_;
  const ReferenceTensors& tensors_;
  Workload& to_;
  std::vector<AtomId> renamed_;      // of the original's variables
  std::vector<int64_t> from_sizes_;  // nodes of the original's expressions as trees
  std::vector<int64_t> to_sizes_;    // the same of to_.pool
};

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_REFERENCE_EXPRS_H_
