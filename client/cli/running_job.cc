#include "client/cli/running_job.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cli/suggested_command.h"

namespace hone::cli {
namespace {

// The number of jobs among which FindRunningJob looks.
constexpr int kNewestJobs = 100;

}  // namespace

bool IsTuning(const client::Job& job, absl::Span<const std::string> workloads,
              absl::string_view target, double tolerance) {
  if (client::HasEnded(job.state) || job.target != target || job.spec.tolerance != tolerance ||
      job.spec.unpublished) {
    return false;
  }
  const auto is_wanted = [&](const std::string& digest) {
    return std::find(workloads.begin(), workloads.end(), digest) != workloads.end();
  };
  if (!job.network.has_value()) return is_wanted(job.workload_digest);
  const std::vector<client::NetworkTaskProgress>& tasks = job.network->tasks;
  return std::any_of(tasks.begin(), tasks.end(), [&](const client::NetworkTaskProgress& task) {
    return task.error.empty() && is_wanted(task.workload_digest);
  });
}

std::string FindRunningJob(client::Connection& connection, absl::Span<const std::string> workloads,
                           absl::string_view target, double tolerance) {
  if (workloads.empty()) return "";
  const absl::StatusOr<std::vector<client::Job>> jobs = connection.ListJobs(kNewestJobs);
  if (!jobs.ok()) return "";
  for (const client::Job& job : *jobs) {
    if (client::HasEnded(job.state)) continue;
    // A list does not contain the tasks of networks.
    const absl::StatusOr<client::Job> whole =
        job.network.has_value() ? connection.GetJob(job.id) : job;
    if (whole.ok() && IsTuning(*whole, workloads, target, tolerance)) return job.id;
  }
  return "";
}

std::string RunningJobText(absl::string_view job, absl::string_view what) {
  return absl::StrCat("job ", job, " is tuning ", what, "; ",
                      SuggestedCommand(absl::StrCat("jobs watch ", job)), " follows the job");
}

}  // namespace hone::cli
