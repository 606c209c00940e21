#include "client/cli/tune/pace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"

namespace hone::cli {
namespace {

// With fewer trials, the speed is not representative.
constexpr int64_t kMinTrialsForEstimate = 8;

}  // namespace

void Pace::Look(const v1::Job& job) {
  const int64_t passed_ms = job.wall_ms() - std::exchange(last_wall_ms_, job.wall_ms());
  // A server that has restarted counts the trials again, from 0.
  const int64_t all = std::max(most_trials_, job.trials());
  const int64_t made = all - std::exchange(most_trials_, all);
  // The trials of a time that does not count do not count either.
  if (std::exchange(looked_, true) && searching_) {
    time_ += absl::Milliseconds(std::max<int64_t>(0, passed_ms));
    if (made > 0) {
      trials_ += made;
      time_at_last_trial_ = time_;
    }
  }
  // A server that has restarted finds the earlier trials of a job again in these phases.
  const bool prepares = absl::StartsWith(job.phase(), "making the design spaces") ||
                        absl::StartsWith(job.phase(), "restoring");
  searching_ = job.state() == v1::JOB_STATE_RUNNING && job.wait_reason().empty() && !prepares;
}

double Pace::TrialsPerSecond() const {
  if (trials_ == 0 || time_ == absl::ZeroDuration()) return 0;
  return static_cast<double>(trials_) / absl::ToDoubleSeconds(time_);
}

absl::Duration Pace::TimeFor(int64_t trials) const {
  if (trials_ < kMinTrialsForEstimate) return absl::InfiniteDuration();
  const absl::Duration since = time_ - time_at_last_trial_;
  const absl::Duration left = time_at_last_trial_ / trials_ * trials - since;
  return left > absl::ZeroDuration() ? left : absl::InfiniteDuration();
}

}  // namespace hone::cli
