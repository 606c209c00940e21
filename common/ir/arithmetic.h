#ifndef HONE_COMMON_IR_ARITHMETIC_H_
#define HONE_COMMON_IR_ARITHMETIC_H_

#include <cstdint>

#include "absl/algorithm/container.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/ir/dtype.h"
#include "common/ir/expr.h"
#include "common/ir/index.h"

namespace hone::ir {

// Semantics of the scalar operations, shared by the interpreters.

// Evaluates one operation; unused operands are ignored. `dtype` is that of the result. Floats are
// computed in double and rounded only by a cast. Integers wrap at each operation; x / 0 is 0.
// Shifts by a negative count, or by the width or more, give 0; to the right, −1 for negative
// numbers.
Scalar EvaluateOp(Op op, DType dtype, Scalar a, Scalar b = 0, Scalar c = 0);

// Returns one component of the combination of two reduction tuples. `dtype` is that of the
// component. Sums and products of floats are not rounded.
Scalar CombineScalars(Reducer reducer, int component, DType dtype, absl::Span<const Scalar> left,
                      absl::Span<const Scalar> right);

// Whether every index is at least 0.
inline bool Holds(const AtomTable& atoms, const IndexList& non_negative,
                  absl::Span<const int64_t> vars) {
  return absl::c_all_of(non_negative,
                        [&](const Index& index) { return atoms.Evaluate(index, vars) >= 0; });
}

// Evaluates an expression, where `vars` has the value of every variable and `load` reads an
// element: absl::StatusOr<Scalar>(const Expr&, int64_t gathered). `gathered` is the value of the
// computed index, or 0 if there is none. The operand that a select or a guarded value does not
// choose is not evaluated.
template <typename Load>
absl::StatusOr<Scalar> Evaluate(const ExprPool& pool, const AtomTable& atoms,
                                absl::Span<const int64_t> vars, ExprId id, const Load& load) {
  const Expr& expr = pool[id];
  if (expr.op == Op::kConst) return expr.value;
  if (expr.op == Op::kIndex) return Scalar(atoms.Evaluate(pool.IndicesOf(expr)[0], vars));
  if (expr.op == Op::kLoad) {
    Scalar gathered;
    if (expr.gathered >= 0) {
      HONE_ASSIGN_OR_RETURN(gathered, Evaluate(pool, atoms, vars, expr.a, load));
    }
    return load(expr, gathered.whole());
  }
  if (expr.op == Op::kWhere) {
    const bool holds = Holds(atoms, pool.IndicesOf(expr), vars);
    return Evaluate(pool, atoms, vars, holds ? expr.a : expr.b, load);
  }
  HONE_ASSIGN_OR_RETURN(const Scalar a, Evaluate(pool, atoms, vars, expr.a, load));
  if (expr.op == Op::kSelect) {
    return Evaluate(pool, atoms, vars, a.IsTrue() ? expr.b : expr.c, load);
  }
  Scalar b;
  if (expr.b != kNoExpr) {
    HONE_ASSIGN_OR_RETURN(b, Evaluate(pool, atoms, vars, expr.b, load));
  }
  return EvaluateOp(expr.op, expr.dtype, a, b);
}

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ARITHMETIC_H_
