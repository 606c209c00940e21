#ifndef HONE_COMMON_IR_INTERPRETER_H_
#define HONE_COMMON_IR_INTERPRETER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/ir/workload.h"

namespace hone::ir {

// A dense row-major tensor, each element a double that its dtype can hold.
using Values = std::vector<double>;

// Runs a program: this is what a program means. Arithmetic of floats is in double and rounded to the dtype at each store;
// that of integers wraps at each operation (i64 is exact to 2^53 only).
// `inputs` in the order of workload.Inputs(); the answer is in the order of workload.Outputs().
// InvalidArgument: the number or sizes of the inputs do not fit. OutOfRange: a block touches memory outside its buffer.
// FailedPrecondition: a block reads an element before it is written.
// ResourceExhausted: more than `max_steps` block instances.
absl::StatusOr<std::vector<Values>> Interpret(const Program& program, absl::Span<const Values> inputs,
                                              int64_t max_steps = int64_t{1} << 32);

// The same of the unscheduled workload.
absl::StatusOr<std::vector<Values>> Interpret(const Workload& workload, absl::Span<const Values> inputs,
                                              int64_t max_steps = int64_t{1} << 32);

// One element of an output, by recursion through the stages, in double without intermediate
// rounding. `read` answers an input's element by tensor and flat row-major offset. Also gives the
// magnitude: the same with every load, product and sum replaced by absolute values, and where a
// quotient or an exponential carries an operand's error on, as much more.
struct ElementValue {
  double value = 0;
  double magnitude = 0;
};
ElementValue InterpretElement(const Workload& workload, BufferId tensor, absl::Span<const int64_t> indices,
                              absl::FunctionRef<double(BufferId, int64_t)> read);

// One scalar operation in double, as the interpreter defines it.
double EvaluateOp(Op op, DType dtype, double a, double b, double c);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_INTERPRETER_H_
