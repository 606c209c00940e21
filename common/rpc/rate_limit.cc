#include "common/rpc/rate_limit.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/rpc/status.h"

namespace hone::rpc {
namespace {

absl::Status Refusal(double per_second, absl::Duration wait) {
  return WithReason(
      WithRetryAfter(absl::ResourceExhaustedError(absl::StrFormat(
                         "too many calls: %g a second are allowed for each caller; try again in "
                         "%d ms",
                         per_second, absl::ToInt64Milliseconds(wait) + 1)),
                     wait),
      "RATE_LIMITED", {{"calls_per_second", absl::StrCat(per_second)}});
}

}  // namespace

double RateLimiter::Filled(const Bucket& bucket, absl::Time now) const {
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - bucket.at));
  return std::min(burst_, bucket.calls + seconds * per_second_);
}

absl::Status RateLimiter::Admit(const std::string& caller) {
  if (!(per_second_ > 0)) return absl::OkStatus();
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  auto found = buckets_.find(caller);
  if (found == buckets_.end()) {
    if (buckets_.size() >= kMaxCallers) {
      absl::erase_if(buckets_,
                     [&](const auto& entry) { return Filled(entry.second, now) >= burst_; });
    }
    if (buckets_.size() >= kMaxCallers) return Refusal(per_second_, absl::Seconds(1));
    found = buckets_.emplace(caller, Bucket{burst_, now}).first;
  }
  Bucket& bucket = found->second;
  bucket = {Filled(bucket, now), now};
  if (bucket.calls < 1) {
    return Refusal(per_second_, absl::Seconds((1 - bucket.calls) / per_second_));
  }
  bucket.calls -= 1;
  return absl::OkStatus();
}

}  // namespace hone::rpc
