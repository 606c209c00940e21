#ifndef HONE_COMMON_IR_INTERPRETER_H_
#define HONE_COMMON_IR_INTERPRETER_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/program.h"
#include "common/ir/scalar.h"
#include "common/ir/workload.h"

namespace hone::ir {

// A dense row-major tensor.
using Scalars = std::vector<Scalar>;
// The same as doubles. Inexact for i64 beyond 2^53.
using Values = std::vector<double>;

// Runs a program. This defines what a program means. Float arithmetic is in double and is rounded
// to the dtype at each store. Sums and products of short floats, which AccumulatorOf() widens, are
// rounded once, when they are read. Integers wrap at each operation. Inputs are in the order of
// workload.Inputs(), outputs in that of workload.Outputs().
//
// InvalidArgument: wrong number or sizes of inputs. OutOfRange: a block accesses memory outside its
// buffer. FailedPrecondition: a block reads an element before it is written. ResourceExhausted:
// more than `max_steps` block instances.
absl::StatusOr<std::vector<Scalars>> Interpret(const Program& program,
                                               absl::Span<const Scalars> inputs,
                                               int64_t max_steps = int64_t{1} << 32);
absl::StatusOr<std::vector<Values>> Interpret(const Program& program,
                                              absl::Span<const Values> inputs,
                                              int64_t max_steps = int64_t{1} << 32);

// Runs the unscheduled workload.
absl::StatusOr<std::vector<Scalars>> Interpret(const Workload& workload,
                                               absl::Span<const Scalars> inputs,
                                               int64_t max_steps = int64_t{1} << 32);
absl::StatusOr<std::vector<Values>> Interpret(const Workload& workload,
                                              absl::Span<const Values> inputs,
                                              int64_t max_steps = int64_t{1} << 32);

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_INTERPRETER_H_
