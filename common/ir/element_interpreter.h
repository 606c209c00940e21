#ifndef HONE_COMMON_IR_ELEMENT_INTERPRETER_H_
#define HONE_COMMON_IR_ELEMENT_INTERPRETER_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

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

#endif  // HONE_COMMON_IR_ELEMENT_INTERPRETER_H_
