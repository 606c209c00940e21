#ifndef HONE_SERVER_FLEET_ARTIFACT_CACHE_H_
#define HONE_SERVER_FLEET_ARTIFACT_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "server/fleet/byte_cache.h"

namespace hone::fleet {

// Holds uploaded artifacts until they are used: run by another worker, or stored. A candidate whose
// artifact was dropped is built again. Thread-safe.
class ArtifactCache {
 public:
  static constexpr int64_t kDefaultBytes = 256 << 20;
  static constexpr int64_t kMaxArtifactBytes = 64 << 20;
  static constexpr size_t kDefaultArtifacts = 1 << 16;

  explicit ArtifactCache(int64_t max_bytes = kDefaultBytes,
                         size_t max_artifacts = kDefaultArtifacts)
      : cache_(max_bytes, max_artifacts) {}

  // Stores the bytes. InvalidArgument: they do not have this digest (32 hex digits), or are more
  // than kMaxArtifactBytes.
  absl::Status Put(const std::string& digest, std::string bytes);
  // Returns the bytes; null if they are not in the cache.
  std::shared_ptr<const std::string> Get(const std::string& digest) { return cache_.Get(digest); }
  bool Has(const std::string& digest) const { return cache_.Has(digest); }

 private:
  ByteCache cache_;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_ARTIFACT_CACHE_H_
