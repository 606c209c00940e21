#include "client/connection/retry.h"

#include <algorithm>

namespace hone::client {

absl::Duration Backoff::Next() {
  const absl::Duration whole = next_;
  next_ = std::min(options_.longest_wait, next_ * options_.growth);
  return whole / 2 + whole * (rng_.Uniform() / 2);
}

absl::Status RetryUnavailable(const RetryOptions& options,
                              const std::function<absl::Status()>& attempt,
                              const std::function<absl::Time()>& now,
                              const std::function<void(absl::Duration)>& sleep) {
  Backoff backoff(options);
  const absl::Time give_up = now() + options.give_up_after;
  while (true) {
    absl::Status status = attempt();
    if (!absl::IsUnavailable(status)) return status;
    const absl::Duration wait = backoff.Next();
    if (now() + wait > give_up) return status;
    sleep(wait);
  }
}

}  // namespace hone::client
