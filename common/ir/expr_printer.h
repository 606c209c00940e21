#ifndef HONE_COMMON_IR_EXPR_PRINTER_H_
#define HONE_COMMON_IR_EXPR_PRINTER_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "common/ir/expr.h"

namespace hone::ir {

// "max(C[i, j] + 1.0, 0.0)". `buffer_name` names the tensors or buffers of the pool's owner. The
// text parses back.
std::string PrintExpr(const ExprPool& pool, const AtomTable& atoms, ExprId root,
                      absl::FunctionRef<std::string(BufferId)> buffer_name);
// "[i, j + 1]".
std::string PrintIndices(const AtomTable& atoms, const IndexList& indices);
// The shortest decimal text that reads back as the same value of the type; always with a point,
// exponent, inf or nan for the float types.
std::string PrintConst(DType dtype, Scalar value);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_EXPR_PRINTER_H_
