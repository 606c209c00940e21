#include "server/job/search/search_options.h"

#include <algorithm>

namespace hone::job {
namespace {

// Without a time limit, the confirmation may take this part of the time of the search, or
// kLeastConfirmation for each task if that is longer.
constexpr double kConfirmationShare = 0.25;
constexpr absl::Duration kLeastConfirmation = absl::Seconds(20);
// The time of a limited confirmation suffices for this many measurements of the search. The one
// that is in progress has to end first, and that of a finalist takes longer.
constexpr int kLeastSteps = 3;

}  // namespace

TaskSearchOptions SearchOptionsOf(const JobSpec& spec) {
  return {.strategy = spec.strategy,
          .cost_model = spec.cost_model,
          .feature_set = spec.feature_set,
          .seed = spec.seed};
}

int BatchSizeOf(const JobSpec& spec, const JobOptions& options) {
  if (spec.max_trials == 0) {
    if (spec.max_time == absl::ZeroDuration()) return options.max_batch;
    // A search of seconds must not spend them on proposing many candidates at once.
    const int64_t seconds = absl::ToInt64Seconds(spec.max_time);
    return static_cast<int>(std::clamp<int64_t>(seconds, options.min_batch, options.max_batch));
  }
  return static_cast<int>(
      std::clamp<int64_t>(spec.max_trials / 8, options.min_batch, options.max_batch));
}

absl::Duration ConfirmationTime(absl::Duration max_time, absl::Duration step) {
  const absl::Duration usual = std::clamp(max_time / 4, absl::Seconds(1), absl::Seconds(20));
  return std::min(max_time / 2, std::max(usual, kLeastSteps * step));
}

absl::Duration ConfirmationLimit(absl::Duration searched, bool cancelled, int64_t tasks) {
  const absl::Duration limit = std::max(kLeastConfirmation * tasks, searched * kConfirmationShare);
  return cancelled ? std::min(limit, kConfirmationAfterCancel) : limit;
}

int NextBatchOf(const JobSpec& spec, const JobOptions& options, int64_t proposed) {
  const int size = BatchSizeOf(spec, options);
  if (spec.max_trials == 0) return size;
  return static_cast<int>(std::min<int64_t>(size, spec.max_trials - proposed));
}

}  // namespace hone::job
