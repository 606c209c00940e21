#ifndef HONE_WORKER_COMPILE_LOWER_LAYOUT_H_
#define HONE_WORKER_COMPILE_LOWER_LAYOUT_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/ir/workload.h"
#include "worker/compile/lower/lowered.h"

namespace hone::lower {

// For each argument of a kernel, inputs before outputs, its strides in elements, outermost first.
// An argument without strides is dense and row-major; an empty list means that all are. An argument
// with strides is a slice of a larger tensor. With slices, each producer can write its part of a
// concatenation in place.
using ArgumentStrides = std::vector<ir::Shape>;

// The memory of a slice: rows of consecutive elements, and a pitch from one row to the next that
// divides all outer strides. The pitch is 0 if all elements are consecutive.
struct Rows {
  int64_t elements = 1;
  int64_t pitch = 0;
};
// REQUIRES that CheckStrides accepts them.
Rows RowsOf(const ir::Shape& shape, const ir::Shape& strides);

// The number of elements from the first to the last element of a slice, both included.
int64_t SpanOf(const ir::Shape& shape, const ir::Shape& strides);

// The offset in a slice of the element that has number `element` in row-major order. Without
// strides, the slice is dense.
int64_t OffsetOf(const ir::Shape& shape, const ir::Shape& strides, int64_t element);

// InvalidArgument, with a message that names the tensor: its elements are packed (ir::IsPacked),
// the number of strides differs from that of the dimensions, a stride is less than the span of the
// dimensions after it, the elements of the last dimension have gaps between them, the rows have no
// common pitch, or the slice spans more than 1 TiB.
absl::Status CheckStrides(absl::string_view name, ir::DType dtype, const ir::Shape& shape,
                          const ir::Shape& strides);

// The alignment in bytes that a kernel may assume for a buffer. A slice may begin at any element.
int64_t AlignmentOf(const LoweredProgram& program, ir::BufferId buffer);

}  // namespace hone::lower

#endif  // HONE_WORKER_COMPILE_LOWER_LAYOUT_H_
