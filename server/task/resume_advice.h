#ifndef HONE_SERVER_TASK_RESUME_ADVICE_H_
#define HONE_SERVER_TASK_RESUME_ADVICE_H_

#include <string>

#include "absl/status/status.h"
#include "server/task/job_types.h"

namespace hone::task {

// Returns a sentence that tells how to continue a job that fails because of `why`. The caller
// appends it to that message. Returns "" in these cases:
// - The cause lies in the job: only FailedPrecondition (such as no worker), Unavailable and
//   ResourceExhausted have causes outside of it, which may go away.
// - The message names the command already.
// - The job publishes nothing. The command that uses its result has ended.
// REQUIRES: `job.wall` is up to date.
std::string ResumeAdvice(const JobSnapshot& job, const absl::Status& why);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_RESUME_ADVICE_H_
