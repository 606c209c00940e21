#ifndef HONE_TESTS_FAULT_MESSAGE_TAP_H_
#define HONE_TESTS_FAULT_MESSAGE_TAP_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "tests/fault/fault_schedule.h"
#include "tests/fault/ledger.h"

namespace hone::fault {

// Stands between the workers and the server, passes their calls on, notes in the ledger what is
// promised, and loses, delays, doubles and repeats messages when it is told to. Thread-safe.
class MessageTap {
 public:
  // Serves on the Unix socket `listen` what the server at `server` answers. `ledger` outlives it.
  static absl::StatusOr<std::unique_ptr<MessageTap>> Start(const std::string& listen,
                                                           const std::string& server,
                                                           Ledger* ledger);
  virtual ~MessageTap() = default;

  // What becomes of the next `calls` calls: one of the kinds about messages. `delay`: of delayed
  // ones.
  virtual void Trouble(FaultKind kind, int calls, absl::Duration delay) = 0;
  // How many calls met trouble.
  virtual int64_t troubled() const = 0;
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_MESSAGE_TAP_H_
