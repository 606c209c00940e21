#ifndef HONE_COMMON_IR_INTERPRETER_H_
#define HONE_COMMON_IR_INTERPRETER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/ir/dtype.h"
#include "common/ir/program.h"
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

// An element and its error bounds (error_bound.h).
struct ElementValue {
  Scalar value;
  double magnitude = 0;
  double rounding = 0;
  double error = 0;  // bound on the error of a correct kernel before the value is stored
};

class ElementMachine;

// Computes elements by recursion through the stages, in double without intermediate rounding.
// Remembers elements of intermediate tensors, because many elements may read the same one. Not
// thread-safe.
class ElementInterpreter {
 public:
  // Returns an input's element, given its tensor and flat row-major offset.
  using Read = std::function<Scalar(BufferId, int64_t)>;
  // The workload must outlive this object.
  ElementInterpreter(const Workload& workload, Read read);
  ~ElementInterpreter();

  // Computes an element. Returns nullopt if that takes more than `most_points` steps; a step is a
  // point of a reduction or an element of an intermediate tensor.
  std::optional<ElementValue> Interpret(BufferId tensor, absl::Span<const int64_t> indices,
                                        int64_t most_points = std::numeric_limits<int64_t>::max());
  // The number of these steps so far.
  int64_t points() const;

 private:
  const std::unique_ptr<ElementMachine> machine_;
};

}  // namespace hone::ir

#endif  // HONE_COMMON_IR_INTERPRETER_H_
