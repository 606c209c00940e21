#include "worker/compile/lower/layout.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/target/kernel_abi.h"

namespace hone::lower {
namespace {

constexpr int64_t kMaxSpanBytes = int64_t{1} << 40;

}  // namespace

Rows RowsOf(const ir::Shape& shape, const ir::Shape& strides) {
  Rows rows;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1) continue;
    if (strides[d] != rows.elements) return {rows.elements, strides[d]};
    rows.elements *= shape[d];
  }
  return rows;
}

int64_t SpanOf(const ir::Shape& shape, const ir::Shape& strides) {
  int64_t last = 0;
  for (size_t d = 0; d < shape.size(); ++d) last += (shape[d] - 1) * strides[d];
  return last + 1;
}

int64_t OffsetOf(const ir::Shape& shape, const ir::Shape& strides, int64_t element) {
  if (strides.empty()) return element;
  int64_t offset = 0;
  for (size_t d = shape.size(); d-- > 0;) {
    offset += element % shape[d] * strides[d];
    element /= shape[d];
  }
  return offset;
}

absl::Status CheckStrides(absl::string_view name, ir::DType dtype, const ir::Shape& shape,
                          const ir::Shape& strides) {
  const auto refuse = [&](auto... why) {
    return absl::InvalidArgumentError(absl::StrCat("strides [", absl::StrJoin(strides, ", "),
                                                   "] of ", name, "[", absl::StrJoin(shape, ", "),
                                                   "]: ", why...));
  };
  if (ir::IsPacked(dtype)) return refuse("a tensor of ", ir::DTypeName(dtype), " is dense");
  if (strides.size() != shape.size()) {
    return refuse("there must be one for each of the ", shape.size(), " dimensions");
  }
  const int64_t most = kMaxSpanBytes / ir::DTypeBytes(dtype);
  int64_t span = 1;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == 1 && strides[d] >= 0 && strides[d] <= most) continue;
    if (strides[d] < span) {
      return refuse("dimension ", d, " needs a stride of at least ", span,
                    ", the span of the dimensions after it; a transposed view is no slice");
    }
    if (strides[d] > most / shape[d]) return refuse("the tensor spans more than 1 TiB");
    span += (shape[d] - 1) * strides[d];
    if (span > most) return refuse("the tensor spans more than 1 TiB");
  }
  if (!shape.empty() && shape.back() > 1 && strides.back() != 1) {
    return refuse("dimension ", shape.size() - 1,
                  " needs a stride of 1, because the elements of a "
                  "row must follow each other in memory; copy the tensor to a dense one");
  }
  const int64_t pitch = RowsOf(shape, strides).pitch;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] > 1 && strides[d] > pitch && pitch > 0 && strides[d] % pitch != 0) {
      return refuse("the stride of dimension ", d, " must be a multiple of ", pitch,
                    ", the distance between rows");
    }
  }
  return absl::OkStatus();
}

int64_t AlignmentOf(const LoweredProgram& program, ir::BufferId buffer) {
  return program.storage[buffer].strides.empty() ? target::kBufferAlignment
                                                 : ir::DTypeBytes(program.buffers[buffer].dtype);
}

}  // namespace hone::lower
