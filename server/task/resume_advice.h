#ifndef HONE_SERVER_TASK_RESUME_ADVICE_H_
#define HONE_SERVER_TASK_RESUME_ADVICE_H_

#include <string>

#include "absl/status/status.h"
#include "server/task/job_types.h"

namespace hone::task {

// Returns how to continue a job that fails because of `why`, to append to that message; "" if
// continuing it would not help, or if the message says so already. It helps if the surroundings of
// the job are the reason: FailedPrecondition (such as no worker), Unavailable and
// ResourceExhausted. Errors of the request and defects have other codes. A job that publishes
// nothing is not continued, because the command that uses its result has ended. REQUIRES:
// `job.wall` is up to date.
std::string ResumeAdvice(const JobSnapshot& job, const absl::Status& why);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_RESUME_ADVICE_H_
