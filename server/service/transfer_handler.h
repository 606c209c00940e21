#ifndef HONE_SERVER_SERVICE_TRANSFER_HANDLER_H_
#define HONE_SERVER_SERVICE_TRANSFER_HANDLER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace hone::service {

struct TransferLimits {
  // Maximum size of all active transfers of a direction together; at least the size of the largest
  // artifact.
  int64_t max_bytes = int64_t{512} << 20;
  // A transfer of which no part was received, or read by the other side, for this long is ended.
  absl::Duration stall_limit = absl::Seconds(60);
};

// Limits the memory of the active uploads or downloads, over all streams. An upload reserves the
// size that its first message states, so that every admitted upload can finish. Thread-safe.
class TransferHandler {
 public:
  // `word`: "upload" or "download", for messages.
  TransferHandler(absl::string_view word, const Clock* steady_clock,
                  const TransferLimits& limits = {})
      : word_(word), clock_(steady_clock), limits_(limits) {}

  // Begins a transfer and returns its number. `cancel` ends its stream, and must not call this
  // object.
  int64_t Enter(std::function<void()> cancel);
  // Reserves memory for the bytes of a transfer. Bytes that several transfers share, which are at
  // `shared`, count once. ResourceExhausted: other transfers use the memory; the message says when
  // to try again.
  absl::Status Reserve(int64_t transfer, int64_t bytes, const void* shared = nullptr);
  // Called when a part of the transfer was received or sent, or is about to be sent.
  void Progress(int64_t transfer);
  // Called when the transfer waits for this server, such as when all of an upload has arrived: that
  // may take long, but the transfer does not stall until the next Progress.
  void Pause(int64_t transfer);
  // Ends a transfer, whose bytes were freed or stored elsewhere.
  void Leave(int64_t transfer);
  // Ends stalled transfers. Called a few times a second.
  void Tick();

 private:
  struct Transfer {
    std::function<void()> cancel;
    int64_t bytes = 0;
    const void* shared = nullptr;
    absl::Time last_progress;
    bool may_stall = true;  // false: it waits for this server, or was cancelled
  };
  const absl::string_view word_;
  const Clock* const clock_;
  const TransferLimits limits_;
  absl::Mutex mutex_;
  std::map<int64_t, Transfer> transfers_ ABSL_GUARDED_BY(mutex_);
  std::map<const void*, int> shared_ ABSL_GUARDED_BY(mutex_);  // by how many transfers
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t last_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_TRANSFER_HANDLER_H_
