#ifndef HONE_SERVER_SERVICE_REFERENCE_CACHE_H_
#define HONE_SERVER_SERVICE_REFERENCE_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/fleet/byte_cache.h"

namespace hone::service {

// Holds reference kernels that machines with a compiler have built for boards without one. They are
// named as in common/record/reference_name.h, because the board cannot know their digests. The
// workload and target of an artifact must match its name. The least recently used artifacts are
// dropped; builders send them again. The board detects a reference that computes something else,
// because it computes some hundred elements with the interpreter. Thread-safe.
class ReferenceCache {
 public:
  explicit ReferenceCache(int64_t max_bytes = int64_t{64} << 20, size_t max_names = 4096)
      : cache_(max_bytes, max_names) {}

  bool Has(const std::string& name) const { return cache_.Has(name); }
  // Stores a reference. Replaces one of the same name, which may be from an older compiler.
  // InvalidArgument: the name or the artifact is malformed, or the artifact is of another workload
  // or target.
  absl::Status Put(const std::string& name, std::string bytes);
  // NotFound: the cache has no reference of that name.
  absl::StatusOr<std::shared_ptr<const std::string>> Get(const std::string& name);

 private:
  fleet::ByteCache cache_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_REFERENCE_CACHE_H_
