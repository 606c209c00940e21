#include "server/fleet/artifact_cache.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/digest.h"

namespace hone::fleet {

absl::Status ArtifactCache::Put(const std::string& digest, std::string bytes) {
  const int64_t size = static_cast<int64_t>(bytes.size());
  if (size > kMaxArtifactBytes) {
    return absl::InvalidArgumentError(absl::StrCat("artifact ", digest, " has ", size,
                                                   " bytes; the limit is ", kMaxArtifactBytes));
  }
  if (const std::string actual = DigestOf(bytes).ToHex(); actual != digest) {
    return absl::InvalidArgumentError(
        absl::StrCat("artifact ", digest, ": the bytes that came have the digest ", actual));
  }
  absl::MutexLock lock(&mutex_);
  if (entries_.contains(digest)) return absl::OkStatus();
  uses_.push_front(digest);
  entries_[digest] = {std::make_shared<const std::string>(std::move(bytes)), uses_.begin()};
  bytes_ += size;
  while ((bytes_ > max_bytes_ || uses_.size() > max_artifacts_) && uses_.size() > 1) {
    auto oldest = entries_.find(uses_.back());
    bytes_ -= static_cast<int64_t>(oldest->second.bytes->size());
    entries_.erase(oldest);
    uses_.pop_back();
  }
  return absl::OkStatus();
}

std::shared_ptr<const std::string> ArtifactCache::Get(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  auto found = entries_.find(digest);
  if (found == entries_.end()) return nullptr;
  uses_.splice(uses_.begin(), uses_, found->second.use);
  return found->second.bytes;
}

bool ArtifactCache::Has(const std::string& digest) const {
  absl::MutexLock lock(&mutex_);
  return entries_.contains(digest);
}

}  // namespace hone::fleet
