#ifndef HONE_SERVER_SERVICE_READINESS_H_
#define HONE_SERVER_SERVICE_READINESS_H_

#include <atomic>

#include "absl/status/status.h"

namespace hone::service {

// Whether the server accepts calls, which it does between its start and its shutdown. Thread-safe.
class Readiness {
 public:
  enum class State { kStarting, kReady, kDraining };
  void Set(State state) { state_ = state; }
  // Unavailable: the server is not ready. Clients retry such calls.
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
