#ifndef HONE_COMMON_IR_ARITHMETIC_H_
#define HONE_COMMON_IR_ARITHMETIC_H_

#include "absl/types/span.h"
#include "common/ir/expr.h"
#include "common/ir/scalar.h"

// Semantics of the scalar operations, shared by the interpreters.
namespace hone::ir {

// Evaluates one operation; unused operands are ignored. `dtype` is that of the result. Floats are
// computed in double and rounded only by a cast. Integers wrap at each operation; x / 0 is 0.
// Shifts by a negative count, or by the width or more, give 0; to the right, −1 for negative
// numbers.
Scalar EvaluateOp(Op op, DType dtype, Scalar a, Scalar b = 0, Scalar c = 0);

// Returns one component of the combination of two reduction tuples. `dtype` is that of the
// component. Sums and products of floats are not rounded.
Scalar CombineScalars(Reducer reducer, int component, DType dtype, absl::Span<const Scalar> left,
                      absl::Span<const Scalar> right);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ARITHMETIC_H_
