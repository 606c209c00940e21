#ifndef HONE_SERVER_JOB_SEARCH_FIRST_WORK_H_
#define HONE_SERVER_JOB_SEARCH_FIRST_WORK_H_

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/job/actor/job_types.h"
#include "server/job/actor/task_environment.h"

namespace hone::job {

// The names of the steps, for messages: "the server ended while making the design spaces".
inline constexpr char kMakingSpaces[] = "making the design spaces";
inline constexpr char kProposing[] = "proposing candidates";

// The error of a job whose time is over before a candidate could be proposed.
absl::Status TimeWasOver(absl::Duration limit, absl::string_view step);

// Does the first work of a new job and discards the result: opens the design spaces and proposes a
// small batch. Calls `begins` with the name of each step before the step. Stops if a step returns
// an error, because the job itself will get the same error.
void DoFirstWork(const TaskEnvironment& environment, const JobSpec& spec,
                 absl::FunctionRef<void(absl::string_view step)> begins);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_FIRST_WORK_H_
