#ifndef HONE_SERVER_SERVICE_UPLOAD_HANDLER_H_
#define HONE_SERVER_SERVICE_UPLOAD_HANDLER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/fleet/artifact_cache.h"

namespace hone::service {

struct UploadLimits {
  // Maximum size of all active uploads together; at least the size of the largest artifact.
  int64_t max_bytes = int64_t{512} << 20;
  // An upload that has received no data for this long is ended.
  absl::Duration stall_limit = absl::Seconds(60);
};

// Limits the memory of active uploads, over all streams. An upload reserves the size that its first
// message states, so that every admitted upload can finish. Thread-safe.
class UploadHandler {
 public:
  explicit UploadHandler(const Clock* steady_clock, const UploadLimits& limits = {})
      : clock_(steady_clock), limits_(limits) {}

  // Begins an upload and returns its number. `cancel` ends its stream, and must not call this
  // object.
  int64_t Enter(std::function<void()> cancel);
  // Reserves memory for the bytes of an upload. ResourceExhausted: other uploads use the memory;
  // the message says when to try again.
  absl::Status Reserve(int64_t upload, int64_t bytes);
  // Called when a part of the upload has arrived.
  void Progress(int64_t upload);
  // Called when all of the upload has arrived: keeping it may take long, but it cannot stall.
  void Received(int64_t upload);
  // Ends an upload, whose bytes were freed or stored elsewhere.
  void Leave(int64_t upload);
  // Ends stalled uploads. Called a few times a second.
  void Tick();

 private:
  struct Upload {
    std::function<void()> cancel;
    int64_t bytes = 0;
    absl::Time last_progress;
    bool may_stall = true;  // false: all of it was received, or it was cancelled
  };
  const Clock* const clock_;
  const UploadLimits limits_;
  absl::Mutex mutex_;
  std::map<int64_t, Upload> uploads_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

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

#endif  // HONE_SERVER_SERVICE_UPLOAD_HANDLER_H_
