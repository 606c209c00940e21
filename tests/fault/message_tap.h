#ifndef HONE_TESTS_FAULT_MESSAGE_TAP_H_
#define HONE_TESTS_FAULT_MESSAGE_TAP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/fault/fault_schedule.h"
#include "tests/fault/ledger.h"

namespace hone::fault {

// A proxy between the workers and a server. It passes calls on, records promises in the ledger, and
// on request loses, delays, duplicates and repeats messages. It says that it serves while the
// server says so. Thread-safe.
class MessageTap {
 public:
  // Serves on the Unix socket `listen` and forwards to `server`. `ledger` must outlive it.
  static absl::StatusOr<std::unique_ptr<MessageTap>> Start(const std::string& listen,
                                                           const std::string& server,
                                                           Ledger* ledger);
  virtual ~MessageTap() = default;

  // Applies a message fault to the next `calls` calls. `delay` is for delayed ones.
  virtual void Trouble(FaultKind kind, int calls, absl::Duration delay) = 0;
  // Number of calls with a fault.
  virtual int64_t troubled() const = 0;
  // Since when the server says that it serves, as the leader does; infinite future: it does not. A
  // server that does not answer is as it was before.
  virtual absl::Time serves_since() const = 0;
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_MESSAGE_TAP_H_
