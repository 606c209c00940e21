#ifndef HONE_CLIENT_CONNECTION_RETRY_H_
#define HONE_CLIENT_CONNECTION_RETRY_H_

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/rng.h"

namespace hone::client {

struct RetryOptions {
  absl::Duration first_wait = absl::Milliseconds(50);
  double growth = 2;
  absl::Duration longest_wait = absl::Seconds(2);
  absl::Duration give_up_after = absl::Seconds(3);  // no new attempt after this time
  uint64_t seed = 0;                                // of the jitter
};

// The waits between attempts. They grow exponentially. Each is drawn between half of its value and
// its value, so that clients that failed together do not retry together.
class Backoff {
 public:
  explicit Backoff(const RetryOptions& options)
      : options_(options), next_(options.first_wait), rng_(options.seed, 1) {}
  absl::Duration Next();

 private:
  RetryOptions options_;
  absl::Duration next_;
  Rng rng_;
};

// Calls `attempt` until it returns anything but Unavailable, the only code for which a retry is
// safe and useful, or until give_up_after has passed. Returns the last status. `now` and `sleep`
// are the clock, injected for tests.
absl::Status RetryUnavailable(const RetryOptions& options,
                              const std::function<absl::Status()>& attempt,
                              const std::function<absl::Time()>& now,
                              const std::function<void(absl::Duration)>& sleep);

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_RETRY_H_
