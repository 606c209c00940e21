#ifndef HONE_SERVER_JOB_JOB_BOOK_H_
#define HONE_SERVER_JOB_JOB_BOOK_H_

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_types.h"
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

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_JOB_BOOK_H_
