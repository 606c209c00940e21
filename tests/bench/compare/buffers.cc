#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/target/kernel_abi.h"
#include "tests/bench/compare/contender.h"

namespace hone::compare {
namespace {

using ir::DType;

template <typename T>
void Fill(void* data, int64_t elements, Rng& rng, double low, double high) {
  for (int64_t e = 0; e < elements; ++e)
    static_cast<T*>(data)[e] = static_cast<T>(low + (high - low) * rng.Uniform());
}

}  // namespace

absl::StatusOr<Buffers> Buffers::Make(const ir::Workload& workload, uint64_t seed) {
  Buffers buffers;
  std::vector<ir::BufferId> ids = workload.Inputs();
  buffers.inputs_ = static_cast<int>(ids.size());
  for (const ir::BufferId id : workload.Outputs()) ids.push_back(id);
  for (const ir::BufferId id : ids) {
    const ir::Tensor& tensor = workload.tensors[id];
    const size_t bytes = (tensor.bytes() + target::kBufferAlignment - 1) /
                         target::kBufferAlignment * target::kBufferAlignment;
    std::shared_ptr<void> memory(std::aligned_alloc(target::kBufferAlignment, bytes), std::free);
    if (memory == nullptr) return absl::ResourceExhaustedError("out of memory");
    std::memset(memory.get(), 0, bytes);
    buffers.memory_.push_back(memory);
    buffers.pointers_.push_back(memory.get());
    buffers.elements_.push_back(ir::ElementsOf(tensor.shape));
    buffers.dtypes_.push_back(tensor.dtype);
    buffers.bytes_ += tensor.bytes();
  }
  for (int i = 0; i < buffers.size(); ++i) {
    Rng rng(seed, i);
    void* const data = buffers.at(i);
    switch (buffers.dtypes_[i]) {
      case DType::kF32:
        Fill<float>(data, buffers.elements_[i], rng, -1, 1);
        break;
      case DType::kU8:
        Fill<uint8_t>(data, buffers.elements_[i], rng, 0, 256);
        break;
      case DType::kI8:
        Fill<int8_t>(data, buffers.elements_[i], rng, -128, 128);
        break;
      case DType::kI32:
        break;
      default:
        return absl::UnimplementedError(absl::StrCat(ir::DTypeName(buffers.dtypes_[i]),
                                                     " is not compared; f32, u8, i8 and i32 are"));
    }
  }
  return buffers;
}

double Buffers::value(int index, int64_t element) const {
  return dtypes_[index] == DType::kF32 ? static_cast<const float*>(at(index))[element]
                                       : static_cast<const int32_t*>(at(index))[element];
}

void Buffers::PoisonOutputs() const {
  for (int i = inputs_; i < size(); ++i) {
    if (dtypes_[i] == DType::kF32) {
      std::fill_n(static_cast<float*>(at(i)), elements_[i], NAN);
    } else {
      std::fill_n(static_cast<int32_t*>(at(i)), elements_[i], INT32_MIN);
    }
  }
}

}  // namespace hone::compare
