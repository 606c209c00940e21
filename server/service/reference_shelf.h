#ifndef HONE_SERVER_SERVICE_REFERENCE_SHELF_H_
#define HONE_SERVER_SERVICE_REFERENCE_SHELF_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace hone::service {

// Reference kernels on their way from a machine that compiles to a board that cannot. They go by
// their names (common/record/reference_name.h), since the board cannot know their digests; what is
// put must be of the workload and target that it is named after. Memory only and bounded, in bytes
// and in names: the least recently used are dropped, and their builder sends them again. A
// reference that computes something else is found on the board, which has the interpreter compute
// some hundred elements. Thread-safe.
class ReferenceShelf {
 public:
  explicit ReferenceShelf(int64_t max_bytes = int64_t{64} << 20, size_t max_names = 4096)
      : max_bytes_(max_bytes), max_names_(max_names) {}

  bool Has(const std::string& name) const;
  // InvalidArgument: it is no such name, no artifact, or one of another workload or target.
  absl::Status Put(const std::string& name, std::string bytes);
  // NotFound: no builder has sent it.
  absl::StatusOr<std::shared_ptr<const std::string>> Get(const std::string& name);

 private:
  struct Entry {
    std::shared_ptr<const std::string> bytes;
    std::list<std::string>::iterator use;
  };
  const int64_t max_bytes_;
  const size_t max_names_;
  mutable absl::Mutex mutex_;
  std::map<std::string, Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::list<std::string> uses_ ABSL_GUARDED_BY(mutex_);  // most recent first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_REFERENCE_SHELF_H_
