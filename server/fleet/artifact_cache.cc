#include "server/fleet/artifact_cache.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/sha256.h"

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

absl::Status ArtifactCache::Put(const std::string& digest, std::string bytes) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (size > kMaxArtifactBytes) {
    return absl::InvalidArgumentError(absl::StrCat("artifact ", digest, " has ", size,
                                                   " bytes; the limit is ", kMaxArtifactBytes));
  }
  if (const std::string actual = Sha256Of(bytes); actual != digest) {
    return absl::InvalidArgumentError(
        absl::StrCat("artifact ", digest, ": the received bytes have the digest ", actual));
  }
  if (!cache_.Has(digest)) cache_.Put(digest, std::move(bytes));
  return absl::OkStatus();
}

}  // namespace hone::fleet
