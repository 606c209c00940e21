#ifndef HONE_COMMON_BASE_CLOCK_H_
#define HONE_COMMON_BASE_CLOCK_H_

#include <chrono>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace hone {

// A source of time. Injected wherever a deadline or a time stamp is used, so that tests do not
// wait. Implementations are thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual absl::Time Now() const = 0;
};

class SystemClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::Now(); }
};

// A clock for deadlines that is unaffected by changes of the wall clock.
class SteadyClock final : public Clock {
 public:
  absl::Time Now() const override {
    return absl::UnixEpoch() +
           absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

// The wall clock's time at the first call plus the time since then, by the monotonic clock. For
// deadlines within one process.
inline absl::Time SteadyNow() {
  static const absl::Duration at_first = absl::Now() - SteadyClock().Now();
  return SteadyClock().Now() + at_first;
}

}  // namespace hone

#endif  // HONE_COMMON_BASE_CLOCK_H_
