#include "server/job/actor/job_types.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/fleet/fair_share.h"

namespace hone::job {
namespace {

constexpr std::pair<JobState, const char*> kNames[] = {
    {JobState::kPending, "pending"},       {JobState::kRunning, "running"},
    {JobState::kConfirming, "confirming"}, {JobState::kDone, "done"},
    {JobState::kCancelled, "cancelled"},   {JobState::kFailed, "failed"},
};

}  // namespace

int PriorityOf(absl::string_view name) {
  if (name == "high") return fleet::kHighPriority;
  return name == "low" ? fleet::kLowPriority : fleet::kNormalPriority;
}

absl::string_view JobStateName(JobState state) {
  for (const auto& [value, name] : kNames) {
    if (value == state) return name;
  }
  return "";
}

absl::StatusOr<JobState> JobStateFromName(absl::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  return absl::InvalidArgumentError(absl::StrCat("no job state is called '", name, "'"));
}

bool HasEnded(JobState state) {
  return state == JobState::kDone || state == JobState::kCancelled || state == JobState::kFailed;
}

Best BestOf(const record::Record& record, double flops, double peak_gflops) {
  Best best{.record = record};
  const double latency = record::SteadyLatencyNs(record.result);
  if (!(latency > 0)) return best;
  best.gflops = flops / latency;
  best.peak_gflops = peak_gflops;
  return best;
}

}  // namespace hone::job
