#ifndef HONE_TESTS_FAKES_FAKE_CLOCK_H_
#define HONE_TESTS_FAKES_FAKE_CLOCK_H_

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace hone {

// A clock that advances only when Advance is called. Thread-safe.
class FakeClock final : public Clock {
 public:
  absl::Time Now() const override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  void Advance(absl::Duration by) {
    absl::MutexLock lock(&mutex_);
    now_ += by;
  }

 private:
  mutable absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::FromUnixSeconds(1'700'000'000);
};

}  // namespace hone

#endif  // HONE_TESTS_FAKES_FAKE_CLOCK_H_
