#ifndef HONE_SERVER_JOB_JOB_CLAIMS_H_
#define HONE_SERVER_JOB_JOB_CLAIMS_H_

#include <deque>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_services.h"
#include "server/job/job_book.h"
#include "server/job/job_starter.h"
#include "server/store/store.h"

namespace hone::job {

// Starts jobs one at a time, each once the job before it has begun. After a crash the jobs begin in
// this way, and those that were in a risky step begin last: if one of them crashes the server
// again, no other job is in such a step. Thread-safe.
class JobTurns {
 public:
  // Appends jobs, and starts the first one if none is beginning.
  void Add(const std::vector<std::shared_ptr<JobActor>>& jobs);
  // Starts the next job if the one before it has begun. Called periodically.
  void Pass();
  // Starts no more jobs.
  void Stop();

 private:
  absl::Mutex mutex_;
  std::deque<std::shared_ptr<JobActor>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<JobActor> beginning_ ABSL_GUARDED_BY(mutex_);  // the last one that was started
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
};

// The claims of this server on stored jobs: takes up the jobs that no server works on, renews the
// claims on those in the book, and lets go of those that another server has claimed. Thread-safe.
// REQUIRES: the parts outlive this object.
class JobClaims {
 public:
  JobClaims(const JobServices& services, const JobOptions& options, JobBook* book,
            const JobStarter* starter);

  // See JobManager::Restore.
  absl::Status Restore();
  // Lets the next job begin after a crash. If server replicas share the store and it is time, also
  // renews the claims and takes up jobs whose server has ended. Called a few times a second.
  void Tick();
  // Starts no more jobs.
  void Stop() { turns_.Stop(); }

 private:
  // Continues jobs that were just claimed, from their stored state. Returns whether it released any
  // of them.
  bool TakeUp(const std::vector<store::JobRow>& rows);
  // Logs why a job's row cannot be read, once per job.
  void LogUnreadable(const std::string& id, const absl::Status& why);
  void Renew();
  // Returns whether a claimed job must be left to the replica that has its parent.
  bool BelongsElsewhere(const JobSnapshot& snapshot,
                        const std::vector<store::JobRow>& claimed) const;
  // Abandons the jobs in `asked` that are not in `held`, and releases their children.
  void LetGo(const std::vector<std::string>& asked, const std::vector<std::string>& held);

  const JobServices& services_;
  const JobOptions& options_;
  JobBook& book_;
  const JobStarter& starter_;
  const std::string boot_;  // boot ID of this machine
  JobTurns turns_;
  absl::Mutex mutex_;
  std::set<std::string> unreadable_ ABSL_GUARDED_BY(mutex_);  // see LogUnreadable
  absl::Time renewed_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_JOB_CLAIMS_H_
