#ifndef HONE_SERVER_JOB_JOB_BOOK_H_
#define HONE_SERVER_JOB_JOB_BOOK_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_services.h"
#include "server/job/actor/job_types.h"
#include "server/job/job.h"
#include "server/store/store.h"

namespace hone::job {

using SnapshotOr = absl::StatusOr<std::shared_ptr<const JobSnapshot>>;

// The jobs in memory, and the limits on their number. A suspended book takes no more jobs.
// Thread-safe.
class JobBook {
 public:
  using JobPtr = std::shared_ptr<JobActor>;

  JobBook(int max_jobs, int max_jobs_per_owner)
      : max_jobs_(max_jobs), max_jobs_per_owner_(max_jobs_per_owner) {}

  // Returns null if the job is not in memory.
  JobPtr Find(const std::string& id) const;
  // Returns the ids of the unfinished jobs, and the number of jobs in each state. Both leave
  // children out.
  std::vector<std::string> Unfinished() const;
  std::map<JobState, int64_t> States() const;

  // Add a job whose row is not stored yet. They return nullopt if they have added it, or else the
  // answer to the request. AddNew: the job that the same request created, ResourceExhausted (a
  // limit is reached, not counting `place`, which was reserved for this job) or Unavailable
  // (suspended). AddAgain, for a job that had ended: the job with its id that is not over,
  // Unavailable, or for a job that is no child ResourceExhausted.
  std::optional<SnapshotOr> AddNew(const JobPtr& job, const void* place = nullptr);
  std::optional<SnapshotOr> AddAgain(const JobPtr& job);
  // Adds a job that limits do not hold up: one of the store, or a child whose row is not stored
  // yet. Returns false if the book is suspended.
  bool Add(const JobPtr& job);
  // Removes an added job whose row could not be stored.
  void Remove(const std::string& id);
  // See JobManager::Reserve. The book must outlive the result.
  absl::StatusOr<std::shared_ptr<void>> Reserve(const std::string& request_id,
                                                const std::string& owner);

  // Removes the jobs that are over. Returns the others.
  std::vector<JobPtr> RemoveOver();
  // Suspends the book, but not its jobs. Returns the jobs.
  std::vector<JobPtr> Suspend();

 private:
  // Returns the job that a request created; null if there is none.
  JobPtr FindRequest(const std::string& request_id) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Checks that the owner may have one more unfinished job. Jobs and places of the same request
  // count once, and neither `own_place` nor other places of `request_id` count.
  // ResourceExhausted: a limit is reached.
  absl::Status CheckLimits(const std::string& request_id, const std::string& owner,
                           const void* own_place = nullptr) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int max_jobs_;
  const int max_jobs_per_owner_;
  mutable absl::Mutex mutex_;
  std::map<std::string, JobPtr> jobs_ ABSL_GUARDED_BY(mutex_);
  // The reserved places: request id → owner.
  std::multimap<std::string, std::string> places_ ABSL_GUARDED_BY(mutex_);
  bool suspended_ ABSL_GUARDED_BY(mutex_) = false;
};

// Returns the state of a job with this row. Errors as for FromRow.
SnapshotOr SharedFromRow(const store::JobRow& row);
// Returns the state of a job, from memory or else from the store. NotFound: no such job.
SnapshotOr ReadJob(const JobBook& book, store::Store& store, const std::string& id);

// Returns whether a best is confirmed and was not withdrawn since: its record was not quarantined,
// for example with "hone forget".
bool IsStillConfirmed(store::Store& store, const std::optional<Best>& best);

// Returns the state of a job with the quarantine of its withdrawn bests, or `job` itself if there
// are none. A job that has not ended is returned unchanged.
std::shared_ptr<const JobSnapshot> WithQuarantine(store::Store& store,
                                                  std::shared_ptr<const JobSnapshot> job);

// Makes jobs, stores their rows and starts them. `Done` runs once with the state of the job when it
// is durable. Thread-safe. REQUIRES: the services and the book outlive this object.
class JobStarter {
 public:
  using Done = absl::AnyInvocable<void(SnapshotOr) &&>;

  JobStarter(const JobServices& services, const JobOptions& options, JobBook* book)
      : services_(services), options_(options), book_(*book) {}

  // Returns the first state of a new job. Errors are those of the store.
  absl::StatusOr<JobSnapshot> NewSnapshot(std::string id, JobSpec spec) const;
  // Makes a job that neither the book nor the store has.
  std::shared_ptr<JobActor> Make(JobSnapshot snapshot) const;

  // Stores a new job and starts it. It takes the `place` that was reserved for it; null: none was.
  // Errors are those of JobManager::Create.
  void StartNew(JobSnapshot snapshot, Done done, std::shared_ptr<void> place = nullptr);
  // Starts a job that has ended again. `snapshot` is its new state, and `row` has this state.
  // Errors are those of JobBook::AddAgain.
  void StartAgain(store::JobRow row, JobSnapshot snapshot, Done done);

  // For a job of networks: the jobs of its tasks, its children, are jobs of the same server.
  using ChildDone = absl::AnyInvocable<void(const absl::Status&) &&>;
  // A child as it is now.
  struct Child {
    // Whether the child's progress is known. It is unknown shortly after a restart of the server.
    bool begun = false;
    std::shared_ptr<const JobSnapshot> snapshot;  // taken after `begun`
  };
  // Stores a job with this id and starts it, unless a job has this id. `done` runs once it is
  // durable, or with an error of the store. If the server is shutting down, `done` is not called,
  // and the next server continues. `skips_default`: see Job::SkipDefault.
  void CreateChild(const std::string& id, JobSpec spec, int64_t allowance, bool skips_default,
                   ChildDone done);
  // Restarts a child that has ended, with at least this allowance.
  void ReopenChild(const std::string& id, int64_t allowance, ChildDone done);
  // NotFound: no such job.
  absl::StatusOr<Child> GetChild(const std::string& id) const;
  // See Job::Allow, Job::Confirm and JobActor::Cancel. They do nothing if the job has ended.
  void AllowChild(const std::string& id, int64_t candidates);
  void ConfirmChild(const std::string& id, Job::ConfirmRequest request);
  void CancelChild(const std::string& id);

 private:
  // Returns null if the child is not in memory.
  std::shared_ptr<Job> FindChild(const std::string& id) const;
  // Stores the row of a job that was added to the book, and starts the job.
  void StoreAndStart(store::JobRow row, std::shared_ptr<JobActor> job, Done done);

  const JobServices& services_;
  const JobOptions& options_;
  JobBook& book_;
};

// Starts jobs one at a time, each once the job before it has begun, or has tried to for kLongest.
// After a crash the jobs begin in this way, and those that were in a risky step begin last: if one
// of them crashes the server again, mostly no other job is in such a step. Thread-safe.
class JobTurns {
 public:
  // A job that cannot be continued for longer does not hold up the others.
  static constexpr absl::Duration kLongest = absl::Minutes(1);

  // REQUIRES: the services outlive this object.
  explicit JobTurns(const JobServices& services) : services_(services) {}

  // Appends jobs, and starts the first one if none is beginning.
  void Add(const std::vector<std::shared_ptr<JobActor>>& jobs);
  // Starts the next job if the one before it has begun. Called periodically.
  void Pass();
  // Starts no more jobs.
  void Stop();

 private:
  const JobServices& services_;
  absl::Mutex mutex_;
  std::deque<std::shared_ptr<JobActor>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<JobActor> beginning_ ABSL_GUARDED_BY(mutex_);  // the last one that was started
  absl::Time started_ ABSL_GUARDED_BY(mutex_);                   // when that was
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_JOB_BOOK_H_
