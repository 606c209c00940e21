#ifndef HONE_COMMON_BASE_CLOCK_H_
#define HONE_COMMON_BASE_CLOCK_H_

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

}  // namespace hone

#endif  // HONE_COMMON_BASE_CLOCK_H_
