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

// Reference kernels on their way from a machine that compiles to a board that cannot. They have the
// names of common/record/reference_name.h, because the board cannot know their digests. What is put
// must be of the workload and target that it is named after. The least recently used are dropped,
// and their builder sends them again. A reference that computes something else is found on the
// board, which has the interpreter compute some hundred elements. Thread-safe.
class ReferenceCache {
 public:
  explicit ReferenceCache(int64_t max_bytes = int64_t{64} << 20, size_t max_names = 4096)
      : cache_(max_bytes, max_names) {}

  bool Has(const std::string& name) const { return cache_.Has(name); }
  // Replaces one of that name, which may be of an older compiler. InvalidArgument: it is no such
  // name, no artifact, or an artifact of another workload or target.
  absl::Status Put(const std::string& name, std::string bytes);
  // NotFound: no builder has sent it.
  absl::StatusOr<std::shared_ptr<const std::string>> Get(const std::string& name);

 private:
  fleet::ByteCache cache_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_REFERENCE_CACHE_H_
