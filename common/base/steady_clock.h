#ifndef HONE_COMMON_BASE_STEADY_CLOCK_H_
#define HONE_COMMON_BASE_STEADY_CLOCK_H_

#include <chrono>

#include "common/base/clock.h"

namespace hone {

// A clock that nobody sets: its times are for deadlines and mean nothing elsewhere. A machine whose
// wall clock jumps expires nothing.
class SteadyClock final : public Clock {
 public:
  absl::Time Now() const override {
    return absl::UnixEpoch() +
           absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
};

// For deadlines within one process: the wall clock's time at the first call, and what has passed
// since. Setting the wall clock later does not move it; while nobody does, it is absl::Now().
inline absl::Time SteadyNow() {
  static const absl::Duration at_first = absl::Now() - SteadyClock().Now();
  return SteadyClock().Now() + at_first;
}

}  // namespace hone

#endif  // HONE_COMMON_BASE_STEADY_CLOCK_H_
