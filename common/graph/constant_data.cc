#include "common/graph/constant_data.h"

#include <utility>

#include "absl/base/call_once.h"

namespace hone::graph {

struct ConstantData::Computation {
  Digest recipe;
  int64_t size = 0;
  std::function<std::string()> compute;
  absl::once_flag once;
  std::string bytes;
};

ConstantData::ConstantData(std::string bytes) {
  const auto owner = std::make_shared<std::string>(std::move(bytes));
  bytes_ = *owner;
  owner_ = owner;
}

ConstantData ConstantData::Computed(const Digest& recipe, int64_t size,
                                    std::function<std::string()> compute) {
  ConstantData data("");
  data.computed_ = std::make_shared<Computation>();
  data.computed_->recipe = recipe;
  data.computed_->size = size;
  data.computed_->compute = std::move(compute);
  return data;
}

int64_t ConstantData::size() const {
  return computed_ == nullptr ? static_cast<int64_t>(bytes_.size()) : computed_->size;
}

absl::string_view ConstantData::bytes() const {
  if (computed_ == nullptr) return bytes_;
  absl::call_once(computed_->once, [this] {
    computed_->bytes = computed_->compute();
    computed_->compute = nullptr;  // frees what it holds
  });
  return computed_->bytes;
}

Digest ConstantData::origin() const {
  if (computed_ != nullptr) return computed_->recipe;
  return DigestBuilder()
      .Add(static_cast<int64_t>(reinterpret_cast<intptr_t>(bytes_.data())))
      .Add(size())
      .Finish();
}

}  // namespace hone::graph
