#ifndef HONE_COMMON_IR_EXPR_PRINTER_H_
#define HONE_COMMON_IR_EXPR_PRINTER_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "common/ir/expr.h"

namespace hone::ir {

// Prints e.g. "max(C[i, j] + 1.0, 0.0)", which parses back. `buffer_name` returns the name of a
// tensor or buffer.
std::string PrintExpr(const ExprPool& pool, const AtomTable& atoms, ExprId root,
                      absl::FunctionRef<std::string(BufferId)> buffer_name);
// "[i, j + 1]".
std::string PrintIndices(const AtomTable& atoms, const IndexList& indices);
// The shortest decimal text that parses back to the same value of the dtype. Floats always have a
// point or an exponent, or are inf or nan.
std::string PrintConst(DType dtype, Scalar value);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_EXPR_PRINTER_H_
