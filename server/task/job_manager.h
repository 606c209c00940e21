#ifndef HONE_SERVER_TASK_JOB_MANAGER_H_
#define HONE_SERVER_TASK_JOB_MANAGER_H_

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/task/job.h"

namespace hone::task {

using SnapshotOr = absl::StatusOr<std::shared_ptr<const JobSnapshot>>;

// All jobs: those under way in memory, the others in the store. Thread-safe.
class JobManager {
 public:
  JobManager(const JobServices& services, JobOptions options);

  // Takes up the jobs that an earlier server left unfinished. Called once, before anything else.
  absl::Status Restore();

  // Stores a job and starts it; `done` runs once it is durable. A request_id that was used before
  // answers the first job, whatever the rest says. Unavailable: shutting down.
  void Create(JobSpec spec, absl::AnyInvocable<void(SnapshotOr) &&> done);
  // NotFound: no such job.
  SnapshotOr Get(const std::string& id) const;
  // Newest first; after_id is the last of the page before, "" for the first one.
  absl::StatusOr<std::vector<std::shared_ptr<const JobSnapshot>>> List(
      int page_size, const std::string& after_id) const;
  // See Job::Cancel. A job that has ended stays as it is. NotFound: no such job.
  SnapshotOr Cancel(const std::string& id, bool confirm);
  // The jobs under way.
  std::vector<std::string> Unfinished() const;

  // Passes the time to the jobs; forgets those that are over.
  void Tick();
  // Leaves every job as it is stored. No message of a job runs once the executor is idle.
  void Suspend();

 private:
  std::shared_ptr<Job> Find(const std::string& id) const;

  const JobServices services_;
  const JobOptions options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<Job>> jobs_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> requests_
      ABSL_GUARDED_BY(mutex_);  // request id → job, of jobs_
  int64_t next_id_ ABSL_GUARDED_BY(mutex_) = 1;
  bool suspended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JOB_MANAGER_H_
