#ifndef HONE_SERVER_FLEET_ARTIFACT_CACHE_H_
#define HONE_SERVER_FLEET_ARTIFACT_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace hone::fleet {

// Artifacts on their way from the worker that built them to the one that runs them, or to the
// store. Memory only and bounded, in bytes and in number: the least recently used are dropped, and
// a candidate whose artifact is gone is built again. Thread-safe.
class ArtifactCache {
 public:
  static constexpr int64_t kDefaultBytes = 256 << 20;
  static constexpr int64_t kMaxArtifactBytes = 64 << 20;

  static constexpr size_t kDefaultArtifacts = 1 << 16;

  explicit ArtifactCache(int64_t max_bytes = kDefaultBytes,
                         size_t max_artifacts = kDefaultArtifacts)
      : max_bytes_(max_bytes), max_artifacts_(max_artifacts) {}

  // Keeps the bytes. InvalidArgument: they do not have that digest (32 hex digits), or are more
  // than kMaxArtifactBytes.
  absl::Status Put(const std::string& digest, std::string bytes);
  // The bytes; null when they are not here.
  std::shared_ptr<const std::string> Get(const std::string& digest);
  bool Has(const std::string& digest) const;

 private:
  struct Entry {
    std::shared_ptr<const std::string> bytes;
    std::list<std::string>::iterator use;
  };
  const int64_t max_bytes_;
  const size_t max_artifacts_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> uses_ ABSL_GUARDED_BY(mutex_);  // most recent first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_ARTIFACT_CACHE_H_
