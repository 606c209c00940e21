#include "server/job/unfinished_job.h"

#include <vector>

#include "common/base/status_macros.h"

namespace hone::job {
namespace {

constexpr int kRowsAtOnce = 1000;

// Adds the jobs whose stored rows say that they are unfinished.
absl::Status AddStored(store::Store& store, std::vector<std::string>& ids) {
  std::string last;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<store::JobRow> page, store.ListJobs(kRowsAtOnce, last));
    for (const store::JobRow& row : page) {
      HONE_ASSIGN_OR_RETURN(const JobState state, JobStateFromName(row.state));
      if (!HasEnded(state)) ids.push_back(row.id);
      last = row.id;
    }
    if (static_cast<int>(page.size()) < kRowsAtOnce) return absl::OkStatus();
  }
}

// Returns whether the networks have this task.
absl::StatusOr<bool> Tunes(const NetworkSpec& network, const TaskEnvironment& environment,
                           const store::TaskKey& task) {
  for (const NetworkTaskSpec& own : network.tasks) {
    HONE_ASSIGN_OR_RETURN(const WorkloadInfo workload, environment.Describe(own.workload));
    if (workload.digest == task.workload_digest) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<std::string> FindUnfinishedJob(const JobManager& jobs, store::Store& store,
                                              const TaskEnvironment& environment,
                                              const store::TaskKey& task) {
  std::vector<std::string> ids = jobs.Unfinished();
  if (store.IsShared()) HONE_RETURN_IF_ERROR(AddStored(store, ids));
  for (const std::string& id : ids) {
    const SnapshotOr job = jobs.Get(id);
    if (absl::IsNotFound(job.status())) continue;
    HONE_RETURN_IF_ERROR(job.status());
    const JobSpec& spec = (*job)->spec;
    if (HasEnded((*job)->state) || spec.target_key != task.target ||
        spec.tolerance != task.tolerance) {
      continue;
    }
    if (spec.network.has_value()) {
      HONE_ASSIGN_OR_RETURN(const bool tuned, Tunes(*spec.network, environment, task));
      if (tuned) return id;
      continue;
    }
    HONE_ASSIGN_OR_RETURN(const WorkloadInfo workload, environment.Describe(spec.workload));
    if (workload.digest == task.workload_digest) return id;
  }
  return std::string();
}

}  // namespace hone::job
