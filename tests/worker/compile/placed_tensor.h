#ifndef HONE_TESTS_WORKER_COMPILE_PLACED_TENSOR_H_
#define HONE_TESTS_WORKER_COMPILE_PLACED_TENSOR_H_

#include <cstdint>

#include "common/ir/dtype.h"
#include "common/ir/workload.h"
#include "worker/compile/lower/layout.h"

namespace hone::codegen {

// Memory with guard bytes on both sides, and in what is not written yet. It begins `offset` bytes
// after an aligned address.
class Guarded {
 public:
  explicit Guarded(int64_t bytes, int64_t offset = 0);
  Guarded(Guarded&& other) noexcept;
  ~Guarded();
  unsigned char* data() { return memory_ + begin_; }
  bool Intact() const;

 private:
  unsigned char* memory_;
  int64_t begin_, bytes_;
};

// A tensor in memory, dense or a slice. A slice has only the alignment of its elements.
class PlacedTensor {
 public:
  // Dense if there are no strides. The tensor must outlive it.
  PlacedTensor(const ir::Tensor& tensor, ir::Shape strides);

  void Write(int64_t element, ir::Scalar value);
  ir::Scalar Read(int64_t element);
  void* data() { return memory_.data(); }
  int64_t bytes() const;
  // Bytes from an aligned address to the first element.
  int64_t offset() const { return offset_; }
  // Whether nothing outside of the tensor was written: around it, or between the rows of a slice.
  bool Intact();

 private:
  int64_t PositionOf(int64_t element) const {
    return lower::OffsetOf(tensor_.shape, strides_, element);
  }

  const ir::Tensor& tensor_;
  ir::Shape strides_;
  int64_t span_;
  int64_t offset_;
  Guarded memory_;
};

}  // namespace hone::codegen

#endif  // HONE_TESTS_WORKER_COMPILE_PLACED_TENSOR_H_
