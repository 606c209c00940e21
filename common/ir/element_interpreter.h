#ifndef HONE_COMMON_IR_ELEMENT_INTERPRETER_H_
#define HONE_COMMON_IR_ELEMENT_INTERPRETER_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "common/ir/scalar.h"
#include "common/ir/workload.h"

namespace hone::ir {

// An element and its error bounds (error_bound.h).
struct ElementValue {
  Scalar value;
  double magnitude = 0;
  double rounding = 0;
  double error = 0;  // bound on the error of a correct kernel before the value is stored
};

// Computes one element of an output by recursion through the stages, in double without intermediate
// rounding. `read` returns an input's element, given its tensor and flat row-major offset.
ElementValue InterpretElement(const Workload& workload, BufferId tensor,
                              absl::Span<const int64_t> indices,
                              absl::FunctionRef<Scalar(BufferId, int64_t)> read);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_ELEMENT_INTERPRETER_H_
