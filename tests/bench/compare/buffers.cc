#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/rng.h"
#include "common/target/kernel_abi.h"
#include "tests/bench/compare/contender.h"

namespace hone::compare {

absl::StatusOr<Buffers> Buffers::Make(const ir::Workload& workload, uint64_t seed) {
  Buffers buffers;
  std::vector<ir::BufferId> ids = workload.Inputs();
  buffers.inputs_ = static_cast<int>(ids.size());
  for (const ir::BufferId id : workload.Outputs()) ids.push_back(id);
  for (const ir::BufferId id : ids) {
    const ir::Tensor& tensor = workload.tensors[id];
    if (tensor.dtype != ir::DType::kF32) {
      return absl::InvalidArgumentError(absl::StrCat(
          tensor.name, " is ", ir::TypeText(tensor.dtype, tensor.shape), "; only f32 is compared"));
    }
    const size_t bytes = (tensor.bytes() + target::kBufferAlignment - 1) /
                         target::kBufferAlignment * target::kBufferAlignment;
    std::shared_ptr<void> memory(std::aligned_alloc(target::kBufferAlignment, bytes), std::free);
    if (memory == nullptr) return absl::ResourceExhaustedError("out of memory");
    std::memset(memory.get(), 0, bytes);
    buffers.memory_.push_back(memory);
    buffers.pointers_.push_back(memory.get());
    buffers.elements_.push_back(ir::ElementsOf(tensor.shape));
  }
  for (int i = 0; i < buffers.inputs_; ++i) {
    Rng rng(seed, i);
    for (int64_t e = 0; e < buffers.elements_[i]; ++e)
      buffers.at(i)[e] = static_cast<float>(2 * rng.Uniform() - 1);
  }
  return buffers;
}

}  // namespace hone::compare
