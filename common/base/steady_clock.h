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

}  // namespace hone

#endif  // HONE_COMMON_BASE_STEADY_CLOCK_H_
