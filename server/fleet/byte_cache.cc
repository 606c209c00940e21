#include "server/fleet/byte_cache.h"

#include <utility>

namespace hone::fleet {

void ByteCache::Put(const std::string& name, std::string bytes) {
  auto kept = std::make_shared<const std::string>(std::move(bytes));
  absl::MutexLock lock(&mutex_);
  Erase(name);
  bytes_ += static_cast<int64_t>(kept->size());
  uses_.push_front(name);
  entries_[name] = {std::move(kept), uses_.begin()};
  while ((bytes_ > max_bytes_ || uses_.size() > max_names_) && uses_.size() > 1) {
    Erase(std::string(uses_.back()));
  }
}

void ByteCache::Erase(const std::string& name) {
  auto found = entries_.find(name);
  if (found == entries_.end()) return;
  bytes_ -= static_cast<int64_t>(found->second.bytes->size());
  uses_.erase(found->second.use);
  entries_.erase(found);
}

std::shared_ptr<const std::string> ByteCache::Get(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  auto found = entries_.find(name);
  if (found == entries_.end()) return nullptr;
  uses_.splice(uses_.begin(), uses_, found->second.use);
  return found->second.bytes;
}

bool ByteCache::Has(const std::string& name) const {
  absl::MutexLock lock(&mutex_);
  return entries_.contains(name);
}

}  // namespace hone::fleet
