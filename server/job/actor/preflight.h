#ifndef HONE_SERVER_JOB_ACTOR_PREFLIGHT_H_
#define HONE_SERVER_JOB_ACTOR_PREFLIGHT_H_

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/job/actor/job_types.h"

namespace hone::job {

// Tries the first work of a job (DoFirstWork) before the server does it, in a place where a crash
// does not end the server. Thread-safe.
class Preflight {
 public:
  virtual ~Preflight() = default;

  // Calls `done` with the verdict, later and in another thread. OK: the work ended, even if a step
  // returned an error. Aborted: it crashed, threw an exception, or needed too much memory or time;
  // the message names the cause and the step. DeadlineExceeded: the time of the job was over before
  // the end. Cancelled: Stop was called.
  using Done = absl::AnyInvocable<void(const absl::Status&) &&>;
  virtual void Check(const JobSpec& spec, Done done) = 0;

  // Ends the checks in progress and refuses new ones. When it returns, `done` has been called for
  // all checks.
  virtual void Stop() = 0;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_PREFLIGHT_H_
