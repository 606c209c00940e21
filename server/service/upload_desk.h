#ifndef HONE_SERVER_SERVICE_UPLOAD_DESK_H_
#define HONE_SERVER_SERVICE_UPLOAD_DESK_H_

#include <cstdint>
#include <functional>
#include <map>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace hone::service {

struct UploadLimits {
  // That uploads under way may hold together, whoever sends them; at least one of the largest.
  int64_t max_bytes = int64_t{512} << 20;
  // One of which nothing has come for so long is ended.
  absl::Duration stall_limit = absl::Seconds(60);
};

// What uploads hold while they are under way, over all streams: an upload has a place from its
// first message on, of the size that it says, so that what is let in can end. Thread-safe.
class UploadDesk {
 public:
  explicit UploadDesk(const Clock* steady_clock, const UploadLimits& limits = {})
      : clock_(steady_clock), limits_(limits) {}

  // An upload begins; `cancel` ends its stream and must not call back within. Returns its number.
  int64_t Enter(std::function<void()> cancel);
  // Keeps room for its bytes. ResourceExhausted: others have it; the message says to come again.
  absl::Status Reserve(int64_t upload, int64_t bytes);
  // Something has come of it.
  void Progress(int64_t upload);
  // It has ended, and its bytes are gone or kept elsewhere.
  void Leave(int64_t upload);
  // Ends those that stand still. Called a few times a second.
  void Tick();

 private:
  struct Upload {
    std::function<void()> cancel;
    int64_t bytes = 0;
    absl::Time last_progress;
    bool cancelled = false;
  };
  const Clock* const clock_;
  const UploadLimits limits_;
  absl::Mutex mutex_;
  std::map<int64_t, Upload> uploads_ ABSL_GUARDED_BY(mutex_);
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_UPLOAD_DESK_H_
