#include "client/cli/tune/running_job.h"

#include <algorithm>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cli/suggested_command.h"
#include "client/connection/connection.h"

namespace hone::cli {
namespace {

// The number of jobs among which FindRunningJob and WasTuned look.
constexpr int kNewestJobs = 100;

bool HasWorker(client::Connection& connection, absl::string_view target) {
  const absl::StatusOr<std::vector<v1::WorkerInfo>> workers = connection.ListWorkers();
  return workers.ok() &&
         std::any_of(workers->begin(), workers->end(), [&](const v1::WorkerInfo& worker) {
           return worker.connected() && worker.target() == target;
         });
}

// Whether a job searches, or has searched, for schedules that it publishes.
bool Searches(const v1::Job& job, absl::string_view target, double tolerance) {
  return job.request().revalidate() == 0 && !job.request().unpublished() && !job.is_check() &&
         job.target() == target && job.request().tolerance() == tolerance;
}

// Whether a workload, given by its digest, is that of the job or of one of its tasks. `failed`:
// whether tasks that have failed count.
bool IsOf(const v1::Job& job, const std::string& digest, bool failed) {
  if (!job.has_network()) return job.workload_digest() == digest;
  const auto& tasks = job.network().tasks();
  return std::any_of(tasks.begin(), tasks.end(), [&](const v1::NetworkTaskProgress& task) {
    return (failed || task.error().empty()) && task.workload_digest() == digest;
  });
}

}  // namespace

size_t CountTuned(const v1::Job& job, absl::Span<const std::string> workloads,
                  absl::string_view target, double tolerance) {
  if (client::HasEnded(job.state()) || !Searches(job, target, tolerance)) return 0;
  return static_cast<size_t>(std::count_if(
      workloads.begin(), workloads.end(),
      [&](const std::string& digest) { return IsOf(job, digest, /*failed=*/false); }));
}

bool WasTuned(Session& session, absl::Span<const std::string> workloads, absl::string_view target,
              double tolerance) {
  client::Connection& connection = session.connection();
  const absl::StatusOr<std::vector<v1::Job>> jobs = connection.ListJobs(kNewestJobs);
  if (!jobs.ok()) return false;
  for (const v1::Job& job : *jobs) {
    if (!client::HasEnded(job.state()) || !Searches(job, target, tolerance)) continue;
    // A list does not contain the tasks of networks.
    const absl::StatusOr<v1::Job> whole = job.has_network() ? connection.GetJob(job.id()) : job;
    if (whole.ok() && std::any_of(workloads.begin(), workloads.end(), [&](const auto& digest) {
          return IsOf(*whole, digest, /*failed=*/true);
        })) {
      return true;
    }
  }
  return false;
}

std::optional<RunningJob> FindRunningJob(Session& session, absl::Span<const std::string> workloads,
                                         absl::string_view target, double tolerance) {
  if (workloads.empty()) return std::nullopt;
  client::Connection& connection = session.connection();
  if (session.private_server() != nullptr && !HasWorker(connection, target)) return std::nullopt;
  const absl::StatusOr<std::vector<v1::Job>> jobs = connection.ListJobs(kNewestJobs);
  if (!jobs.ok()) return std::nullopt;
  RunningJob found;
  for (const v1::Job& job : *jobs) {
    if (client::HasEnded(job.state())) continue;
    // A list does not contain the tasks of networks.
    const absl::StatusOr<v1::Job> whole = job.has_network() ? connection.GetJob(job.id()) : job;
    if (!whole.ok()) continue;
    const size_t tuned = CountTuned(*whole, workloads, target, tolerance);
    if (tuned > found.tuned) found = {job.id(), !whole->wait_reason().empty(), tuned};
  }
  return found.tuned > 0 ? std::make_optional(found) : std::nullopt;
}

std::string RunningJobText(const RunningJob& job, size_t workloads) {
  const absl::string_view what = workloads == 1           ? "it"
                                 : job.tuned == workloads ? "them"
                                 : job.tuned == 1         ? "one of them"
                                                          : "some of them";
  return absl::StrCat("job ", job.id, job.waits ? " waits for a worker to tune " : " is tuning ",
                      what, "; ", SuggestedCommand("jobs watch " + job.id), " follows the job");
}

}  // namespace hone::cli
