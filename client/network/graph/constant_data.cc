#include "client/network/graph/constant_data.h"

#include <atomic>
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

namespace {

// Addresses cannot identify constants, because memory that was freed is used again.
int64_t NextId() {
  static std::atomic<int64_t> last = 0;
  return ++last;
}

}  // namespace

ConstantData::ConstantData(std::shared_ptr<const void> owner, absl::string_view bytes)
    : owner_(std::move(owner)), bytes_(bytes), id_(NextId()) {}

ConstantData::ConstantData(std::string bytes) : id_(NextId()) {
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
  return DigestBuilder().Add("constant").Add(id_).Finish();
}

}  // namespace hone::graph
