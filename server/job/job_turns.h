#ifndef HONE_SERVER_JOB_JOB_TURNS_H_
#define HONE_SERVER_JOB_JOB_TURNS_H_

#include <deque>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/job/actor/job_actor.h"

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

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_JOB_TURNS_H_
