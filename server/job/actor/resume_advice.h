#ifndef HONE_SERVER_JOB_ACTOR_RESUME_ADVICE_H_
#define HONE_SERVER_JOB_ACTOR_RESUME_ADVICE_H_

#include <string>

#include "absl/status/status.h"
#include "server/job/actor/job_types.h"

namespace hone::job {

// Whether the cause of a failure lies outside of the job and may go away. This holds for
// FailedPrecondition (such as no worker), Unavailable and ResourceExhausted.
bool IsOfTheSurroundings(const absl::Status& why);

// Returns a clause that tells how to continue a job that fails with the message `why`, to be
// appended to that message. Returns "" in these cases:
// - The job is not resumable (JobSnapshot::is_resumable).
// - The message names the command already.
// - The job publishes nothing. The command that uses its result has ended.
// - The job tunes a task of a network. The job of the network decides whether it can go on.
// REQUIRES: `job.wall` is up to date.
std::string ResumeAdvice(const JobSnapshot& job, absl::string_view why);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_RESUME_ADVICE_H_
