#ifndef HONE_SERVER_FLEET_BYTE_CACHE_H_
#define HONE_SERVER_FLEET_BYTE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
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

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_BYTE_CACHE_H_
