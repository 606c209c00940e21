#ifndef HONE_SERVER_CONFIRM_DELIVER_PHASE_H_
#define HONE_SERVER_CONFIRM_DELIVER_PHASE_H_

#include <vector>

#include "absl/time/time.h"
#include "server/confirm/finalist.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"

namespace hone::job {

// The last phase of an unpublished job. The fastest screened candidate is the result, without a
// confirmation, and its artifact is fetched from the worker. If that worker is gone, the candidate
// is built again. Belongs to the job's strand.
class DeliverPhase {
 public:
  DeliverPhase(JobActor& job, JobTask& task) : job_(job), task_(task) {}

  void Begin(std::vector<Screened> screened);
  // Called periodically. After Begin, ends the job once the artifact has arrived.
  void Tick();

 private:
  // Builds and measures the candidate again, because no worker has its artifact any more.
  void Rebuild();

  JobActor& job_;
  JobTask& task_;
  Screened best_;
  bool rebuilt_ = false;
  absl::Time deadline_ = absl::InfiniteFuture();
};

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_DELIVER_PHASE_H_
