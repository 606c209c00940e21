#ifndef HONE_COMMON_RPC_RATE_LIMIT_H_
#define HONE_COMMON_RPC_RATE_LIMIT_H_

#include <cstddef>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace hone::rpc {

// A token bucket for each caller: so many calls a second in the long run, so many at once after a
// pause. Thread-safe. Bounded: when there are kMaxCallers buckets, full ones are forgotten, and a
// caller beyond that many is refused.
class RateLimiter {
 public:
  static constexpr size_t kMaxCallers = 100'000;

  // `per_second` 0: no limit.
  RateLimiter(const Clock* clock, double per_second, double burst)
      : clock_(clock), per_second_(per_second), burst_(burst) {}

  // ResourceExhausted, with when to try again (RetryAfter): the caller has used up its share.
  absl::Status Admit(const std::string& caller);

 private:
  struct Bucket {
    double calls = 0;  // that may be made at `at`
    absl::Time at;
  };
  double Filled(const Bucket& bucket, absl::Time now) const;

  const Clock* const clock_;
  const double per_second_;
  const double burst_;
  absl::Mutex mutex_;
  absl::flat_hash_map<std::string, Bucket> buckets_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_RATE_LIMIT_H_
