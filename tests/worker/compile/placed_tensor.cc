#include "tests/worker/compile/placed_tensor.h"

#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

namespace hone::codegen {
namespace {

constexpr int64_t kGuardBytes = 4096;
constexpr unsigned char kGuard = 0xa5;

}  // namespace

Guarded::Guarded(int64_t bytes, int64_t offset) : begin_(kGuardBytes + offset), bytes_(bytes) {
  const int64_t total = (begin_ + bytes + kGuardBytes + 4095) / 4096 * 4096;
  memory_ = static_cast<unsigned char*>(std::aligned_alloc(4096, total));
  std::memset(memory_, kGuard, total);
}

Guarded::Guarded(Guarded&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)), begin_(other.begin_), bytes_(other.bytes_) {}

Guarded::~Guarded() { std::free(memory_); }

bool Guarded::Intact() const {
  for (int64_t i = 0; i < kGuardBytes; ++i) {
    if (memory_[begin_ - 1 - i] != kGuard || memory_[begin_ + bytes_ + i] != kGuard) return false;
  }
  return true;
}

PlacedTensor::PlacedTensor(const ir::Tensor& tensor, ir::Shape strides)
    : tensor_(tensor),
      strides_(std::move(strides)),
      span_(strides_.empty() ? ir::ElementsOf(tensor.shape)
                             : lower::SpanOf(tensor.shape, strides_)),
      offset_(strides_.empty() ? 0 : ir::DTypeBytes(tensor.dtype)),
      memory_(ir::BytesOf(tensor.dtype, span_), offset_) {}

void PlacedTensor::Write(int64_t element, ir::Scalar value) {
  ir::WriteElement(tensor_.dtype, memory_.data(), PositionOf(element), value);
}

ir::Scalar PlacedTensor::Read(int64_t element) {
  return ir::ReadElement(tensor_.dtype, memory_.data(), PositionOf(element));
}

int64_t PlacedTensor::bytes() const { return ir::BytesOf(tensor_.dtype, span_); }

bool PlacedTensor::Intact() {
  if (strides_.empty()) return memory_.Intact();
  const int64_t bytes = ir::DTypeBytes(tensor_.dtype);
  std::vector<bool> element(span_);
  for (int64_t e = 0; e < ir::ElementsOf(tensor_.shape); ++e) element[PositionOf(e)] = true;
  for (int64_t at = 0; at < span_; ++at) {
    for (int64_t b = 0; !element[at] && b < bytes; ++b) {
      if (memory_.data()[at * bytes + b] != kGuard) return false;
    }
  }
  return memory_.Intact();
}

}  // namespace hone::codegen
