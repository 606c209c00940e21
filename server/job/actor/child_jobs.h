#ifndef HONE_SERVER_JOB_ACTOR_CHILD_JOBS_H_
#define HONE_SERVER_JOB_ACTOR_CHILD_JOBS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/job/actor/job_types.h"

namespace hone::job {

// Gives a job of networks access to the jobs of its tasks. ManagedChildJobs implements it.
// Thread-safe.
class ChildJobs {
 public:
  // A child as it is now.
  struct Child {
    // Whether the child's progress is known. It is unknown shortly after a restart of the server,
    // and while another server replica works on the child.
    bool begun = false;
    std::shared_ptr<const JobSnapshot> snapshot;  // taken after `begun`
  };
  using Done = absl::AnyInvocable<void(const absl::Status&) &&>;

  virtual ~ChildJobs() = default;

  // Stores a job with this id and starts it, if there is none. `done` runs once it is durable.
  virtual void CreateChild(const std::string& id, JobSpec spec, int64_t allowance, Done done) = 0;
  // Restarts a child that has ended, with at least this allowance.
  virtual void ReopenChild(const std::string& id, int64_t allowance, Done done) = 0;
  // NotFound: no such job.
  virtual absl::StatusOr<Child> GetChild(const std::string& id) const = 0;
  // See Job::Allow, Job::Finish and JobActor::Cancel. They do nothing if the job has ended.
  virtual void AllowChild(const std::string& id, int64_t candidates) = 0;
  virtual void FinishChild(const std::string& id, absl::Duration limit, bool cancelled) = 0;
  virtual void CancelChild(const std::string& id) = 0;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_CHILD_JOBS_H_
