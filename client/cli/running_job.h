#ifndef HONE_CLIENT_CLI_RUNNING_JOB_H_
#define HONE_CLIENT_CLI_RUNNING_JOB_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/lib/api.h"
#include "client/lib/connection.h"

// Finds the job that is about to answer what a command asks for.
namespace hone::cli {

// Whether a job has not ended, and will publish what it finds for one of the workloads, which are
// given by their digests. REQUIRES: the job of a network has its tasks.
bool IsTuning(const client::Job& job, absl::Span<const std::string> workloads,
              absl::string_view target, double tolerance);

// Returns the number of the newest job that is tuning one of the workloads. "" if there is none
// among the newest jobs of the server, or if the server does not answer.
std::string FindRunningJob(client::Connection& connection, absl::Span<const std::string> workloads,
                           absl::string_view target, double tolerance);

// A clause of an error message: "job 12 is tuning it; hone jobs watch 12 follows the job".
std::string RunningJobText(absl::string_view job, absl::string_view what);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RUNNING_JOB_H_
