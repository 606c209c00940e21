#ifndef HONE_COMMON_IR_REFERENCE_EXPRS_H_
#define HONE_COMMON_IR_REFERENCE_EXPRS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "common/ir/accuracy.h"
#include "common/ir/error_bound.h"
#include "common/ir/f64_term.h"
#include "common/ir/workload.h"

namespace hone::ir {

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
