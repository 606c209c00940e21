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

// Bytes by name, in memory. Bounded in bytes and in names: the least recently used are dropped.
// Thread-safe.
class ByteCache {
 public:
  ByteCache(int64_t max_bytes, size_t max_names) : max_bytes_(max_bytes), max_names_(max_names) {}

  // Keeps the bytes in place of others of that name.
  void Put(const std::string& name, std::string bytes);
  // Null: there are no bytes of that name.
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
