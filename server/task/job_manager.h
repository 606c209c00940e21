#ifndef HONE_SERVER_TASK_JOB_MANAGER_H_
#define HONE_SERVER_TASK_JOB_MANAGER_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/task/child_jobs.h"
#include "server/task/job.h"
#include "server/task/job_places.h"
#include "server/task/job_turns.h"

namespace hone::task {

using SnapshotOr = absl::StatusOr<std::shared_ptr<const JobSnapshot>>;

// Manages all jobs. Unfinished jobs are in memory, the others only in the store. The children of a
// job of networks are ordinary jobs, except that lists, counts and quotas leave them out and that
// only their parent creates and resumes them. Thread-safe.
class JobManager final : private ChildJobs {
 public:
  JobManager(const JobServices& services, JobOptions options);

  // Continues the jobs that an earlier server left unfinished and that no other server works on.
  // Called once, before any other method.
  absl::Status Restore();

  // Stores a job and starts it. `done` runs once the job is durable. If the request_id was used
  // before, `done` gets the earlier job, even if the rest of the spec differs. Unavailable: the
  // server is shutting down. ResourceExhausted: too many jobs of the owner, or of all owners, are
  // unfinished.
  void Create(JobSpec spec, absl::AnyInvocable<void(SnapshotOr) &&> done);
  // Reserves a place among the unfinished jobs for a later call of Create. Destroying the result
  // releases the place; the manager must outlive the result. Calls with the same request_id share
  // one place, and a request_id that was used before needs none. ResourceExhausted: as for Create.
  absl::StatusOr<std::shared_ptr<void>> Reserve(const JobSpec& spec);
  // NotFound: no such job.
  SnapshotOr Get(const std::string& id) const;
  // Returns whether the job is in memory, so that Get does not read the store.
  bool Holds(const std::string& id) const { return Find(id) != nullptr; }
  // Returns a page of jobs, newest first. `after_id` is the last job of the previous page; "":
  // returns the first page. A job that cannot be read is listed with the reason as its error.
  absl::StatusOr<std::vector<std::shared_ptr<const JobSnapshot>>> List(
      int page_size, const std::string& after_id) const;
  // See JobActor::Cancel. Does nothing if the job has ended. NotFound: unknown job.
  // FailedPrecondition: another server replica works on it.
  SnapshotOr Cancel(const std::string& id, bool confirm);
  // Resumes a cancelled or failed job where it stopped. `done` runs once this is durable. Limits
  // that are not zero replace the job's limits. Does nothing if the job is unfinished. NotFound:
  // unknown job. FailedPrecondition: the job is done. InvalidArgument: a limit is below the job's
  // limit, or the job is a child. Unavailable: the server is shutting down, or the job or one of
  // its children is just ending.
  void Resume(const std::string& id, int64_t max_trials, absl::Duration max_time,
              absl::AnyInvocable<void(SnapshotOr) &&> done);
  // Returns the ids of the unfinished jobs.
  std::vector<std::string> Unfinished() const;

  // Returns the number of jobs in memory in each state.
  std::map<JobState, int64_t> States() const;

  // Calls Tick of the jobs and forgets those that are over. If server replicas share the store,
  // also renews the claims on the jobs and takes over jobs whose server has ended.
  void Tick();
  // Suspends all jobs. Once the executor is idle, no message of a job runs any more.
  void Suspend();

 private:
  void CreateChild(const std::string& id, JobSpec spec, int64_t allowance, Done done) override;
  void ReopenChild(const std::string& id, int64_t allowance, Done done) override;
  absl::StatusOr<Child> GetChild(const std::string& id) const override;
  void AllowChild(const std::string& id, int64_t candidates) override;
  void FinishChild(const std::string& id, absl::Duration limit) override;
  void CancelChild(const std::string& id) override;
  std::shared_ptr<Job> FindChild(const std::string& id) const;

  std::shared_ptr<JobActor> MakeJob(JobSnapshot snapshot) const;
  std::shared_ptr<JobActor> Find(const std::string& id) const;
  store::JobClaim MakeClaim() const;
  // Continues jobs that were just claimed, from their stored state. Returns whether it released any
  // of them.
  bool TakeUp(const std::vector<store::JobRow>& rows);
  // Logs why a job's row cannot be read, once per job.
  void LogUnreadable(const std::string& id, const absl::Status& why);
  void RenewClaims();
  // Returns whether a claimed job must be left to the replica that has its parent.
  bool BelongsElsewhere(const JobSnapshot& snapshot,
                        const std::vector<store::JobRow>& claimed) const;
  // Abandons the jobs in `asked` that are not in `held`, and releases their children.
  void LetGo(const std::vector<std::string>& asked, const std::vector<std::string>& held);
  // Notes how the children of an ended job of networks ended. Unavailable: one has not ended yet.
  absl::Status NoteEnds(const std::string& id, NetworkState& network) const;
  // Starts an ended job again, whose row is stored with its new state. `done` gets its state once
  // this is durable.
  void StartAgain(store::JobRow row, JobSnapshot snapshot,
                  absl::AnyInvocable<void(SnapshotOr) &&> done);
  // Adds a job to jobs_, for a call of StoreAndStart.
  void AddUnstored(const std::shared_ptr<JobActor>& job) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Stores the row of a job of AddUnstored and starts it.
  void StoreAndStart(store::JobRow row, std::shared_ptr<JobActor> job,
                     absl::AnyInvocable<void(SnapshotOr) &&> done);
  // Returns the job in memory that a request created; null if there is none.
  std::shared_ptr<JobActor> FindRequest(const std::string& request_id) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the requests and owners of the jobs in memory.
  std::vector<JobPlaces::Holder> Holders() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string replica_;  // identifies this run of this server in claims
  const std::string boot_;     // boot ID of this machine
  const JobServices services_;
  const JobOptions options_;
  mutable absl::Mutex mutex_;
  std::map<std::string, std::shared_ptr<JobActor>> jobs_ ABSL_GUARDED_BY(mutex_);
  // The jobs of jobs_ whose row may not be stored yet, so that a renewal of claims may miss them.
  std::set<std::string> unstored_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> unreadable_ ABSL_GUARDED_BY(mutex_);  // see LogUnreadable
  JobPlaces places_ ABSL_GUARDED_BY(mutex_);
  JobTurns turns_;
  absl::Time claims_renewed_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  bool suspended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JOB_MANAGER_H_
