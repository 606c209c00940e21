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
        absl::StrCat("artifact ", digest, ": the received bytes have the digest ", actual));
  }
  if (!cache_.Has(digest)) cache_.Put(digest, std::move(bytes));
  return absl::OkStatus();
}

}  // namespace hone::fleet
