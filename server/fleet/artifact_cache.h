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

// An in-memory cache of byte strings by name. Limits the number of bytes and of names by dropping
// the least recently used entries. Thread-safe.
class ByteCache {
 public:
  ByteCache(int64_t max_bytes, size_t max_names) : max_bytes_(max_bytes), max_names_(max_names) {}

  // Stores the bytes, and replaces an entry of the same name.
  void Put(const std::string& name, std::string bytes);
  // Returns the bytes of that name; null if there are none.
  std::shared_ptr<const std::string> Get(const std::string& name);
  bool Has(const std::string& name) const;

 private:
  struct Entry {
    std::shared_ptr<const std::string> bytes;
    std::list<std::string>::iterator use;
  };
  void Erase(const std::string& name) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t max_bytes_;
  const size_t max_names_;
  mutable absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> uses_ ABSL_GUARDED_BY(mutex_);  // most recent first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

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

  // Stores the bytes. InvalidArgument: they do not have this SHA-256 (64 hex digits), or are more
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
