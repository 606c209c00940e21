#ifndef HONE_SERVER_JOB_JOB_MANAGER_H_
#define HONE_SERVER_JOB_JOB_MANAGER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/task_environment.h"
#include "server/job/job_book.h"
#include "server/job/search/proposals.h"
#include "server/store/store.h"

namespace hone::job {

// Returns a new name for JobServices::server.
std::string NameARun();

// Manages all jobs. Unfinished jobs are in memory, the others only in the store. The children of a
// job of networks are ordinary jobs, except that lists, counts and quotas leave them out and that
// only their parent creates and resumes them. Thread-safe.
class JobManager {
 public:
  JobManager(const JobServices& services, JobOptions options);

  // Continues the jobs that an earlier server left unfinished. Called once, before any other method
  // but Tick and Suspend. Continues none, and returns OK, if the store is damaged.
  absl::Status Restore();

  // Stores a job and starts it. `done` runs once the job is durable. If the request_id was used
  // before, `done` gets the earlier job, even if the rest of the spec differs. `place`: from
  // Reserve; held until the job has it or has failed. Unavailable: the server is shutting down.
  // ResourceExhausted: too many jobs of the owner, or of all owners, are unfinished. Other errors
  // are those of the store.
  void Create(JobSpec spec, absl::AnyInvocable<void(SnapshotOr) &&> done,
              std::shared_ptr<void> place = nullptr);
  // Reserves a place among the unfinished jobs for a later call of Create. Destroying the result
  // releases the place; the manager must outlive the result. Calls with the same request_id share
  // one place, and a request_id that was used before needs none. ResourceExhausted: as for Create.
  absl::StatusOr<std::shared_ptr<void>> Reserve(const JobSpec& spec);
  // NotFound: no such job.
  SnapshotOr Get(const std::string& id) const;
  // Returns the state of a job in memory that has not ended. Null for the others, for which Get
  // reads the store.
  std::shared_ptr<const JobSnapshot> FindUnfinished(const std::string& id) const;
  // Returns a page of jobs, newest first. `after_id` is the last job of the previous page; "":
  // returns the first page. A job that cannot be read is listed with the reason as its error.
  absl::StatusOr<std::vector<std::shared_ptr<const JobSnapshot>>> List(
      int page_size, const std::string& after_id) const;
  // See JobActor::Cancel. Does nothing if the job has ended. NotFound: unknown job.
  SnapshotOr Cancel(const std::string& id, bool confirm);
  // Cancels a job without confirmation if it is in memory, and reads nothing.
  void CancelHeld(const std::string& id);
  // Resumes a cancelled or failed job where it stopped. `done` runs once this is durable. Limits
  // that are not zero replace the job's limits. Without limits, does nothing if the job is
  // unfinished. NotFound: unknown job. FailedPrecondition: the job is done, or unfinished and being
  // cancelled or given limits. InvalidArgument: the job has already made more trials than its limit
  // or taken all of its time, or it is a child. ResourceExhausted: as for Create. Unavailable: the
  // server is shutting down, or the job or one of its children is just ending.
  void Resume(const std::string& id, int64_t max_trials, absl::Duration max_time,
              absl::AnyInvocable<void(SnapshotOr) &&> done);
  // See Job::Propose. `caller`: limits count its calls. NotFound: unknown job. FailedPrecondition:
  // the job has ended or tunes networks. ResourceExhausted: too many traces of the caller, or of
  // all callers, are being read.
  void Propose(const std::string& id, const std::string& caller, Proposals proposals,
               ProposalAnswer::Done done);
  // Returns the ids of the unfinished jobs.
  std::vector<std::string> Unfinished() const { return book_.Unfinished(); }

  // Returns the number of jobs in memory in each state.
  std::map<JobState, int64_t> States() const { return book_.States(); }

  // Calls Tick of the jobs, forgets those that are over, and lets the next job begin after a crash.
  void Tick();
  // Suspends all jobs. Once the executor is idle, no message of a job runs any more.
  void Suspend();

 private:
  // Notes the last states of the children of an ended job of networks, which may have changed since
  // it ended. Returns how many trials they have measured, or measure when the job is resumed.
  // Unavailable: one has not ended yet.
  absl::StatusOr<int64_t> NoteEnds(JobSnapshot& job) const;

  JobServices services_;  // does not change after the constructor
  const JobOptions options_;
  JobBook book_;
  JobStarter starter_;
  JobTurns turns_;
  // Shared with the calls in progress, which may outlive this object.
  const std::shared_ptr<CheckingLimit> checking_ = std::make_shared<CheckingLimit>();
};

// Returns the id of an unfinished job that tunes the task; "" if there is none.
absl::StatusOr<std::string> FindUnfinishedJob(const JobManager& jobs,
                                              const TaskEnvironment& environment,
                                              const store::TaskKey& task);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_JOB_MANAGER_H_
