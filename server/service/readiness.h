#ifndef HONE_SERVER_SERVICE_READINESS_H_
#define HONE_SERVER_SERVICE_READINESS_H_

#include <atomic>

#include "absl/status/status.h"

namespace hone::service {

// Whether calls are accepted: not before the start is over, and not once the server drains.
// Thread-safe.
class Readiness {
 public:
  enum class State { kStarting, kReady, kDraining };
  void Set(State state) { state_ = state; }
  // Unavailable, which clients retry, unless ready.
  absl::Status Check() const {
    switch (state_) {
      case State::kStarting:
        return absl::UnavailableError("the server is starting");
      case State::kDraining:
        return absl::UnavailableError("the server is shutting down");
      case State::kReady:
        break;
    }
    return absl::OkStatus();
  }

 private:
  std::atomic<State> state_{State::kStarting};
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_READINESS_H_
