#ifndef HONE_COMMON_IR_ARITHMETIC_H_
#define HONE_COMMON_IR_ARITHMETIC_H_

#include "absl/types/span.h"
#include "common/ir/expr.h"
#include "common/ir/scalar.h"

// The meaning of scalar operations, which the interpreters share.
namespace hone::ir {

// One operation on values; unused operands are ignored. `dtype` is that of the result. Floats are
// computed in double and not rounded, except by a cast. Integers wrap at each operation; x / 0 is
// 0.
Scalar EvaluateOp(Op op, DType dtype, Scalar a, Scalar b = 0, Scalar c = 0);

// One component of two combined tuples of a reduction. `dtype` is that of the component. Sums and
// products of floats are not rounded.
Scalar CombineScalars(Reducer reducer, int component, DType dtype, absl::Span<const Scalar> left,
                      absl::Span<const Scalar> right);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ARITHMETIC_H_
