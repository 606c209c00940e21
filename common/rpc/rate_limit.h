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

// A token bucket for each caller: `per_second` calls a second on average, and `burst` calls at once
// after a pause. If there are kMaxCallers buckets, full buckets are removed; if none is full, a new
// caller is refused. Thread-safe.
class RateLimiter {
 public:
  static constexpr size_t kMaxCallers = 100'000;

  // `per_second` 0: no limit.
  RateLimiter(const Clock* clock, double per_second, double burst)
      : clock_(clock), per_second_(per_second), burst_(burst) {}

  // ResourceExhausted: the caller has made too many calls; RetryAfter says when to try again.
  absl::Status Admit(const std::string& caller);

 private:
  struct Bucket {
    double calls = 0;  // number of calls allowed at `at`
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
