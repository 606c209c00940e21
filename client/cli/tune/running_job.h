#ifndef HONE_CLIENT_CLI_TUNE_RUNNING_JOB_H_
#define HONE_CLIENT_CLI_TUNE_RUNNING_JOB_H_

#include <cstddef>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cli/session.h"
#include "client/connection/api.h"

// Finds the job that is about to answer what a command asks for.
namespace hone::cli {

struct RunningJob {
  std::string id;
  bool waits = false;  // for a worker
  size_t tuned = 0;    // how many of the workloads it tunes
};

// Returns for how many of the workloads, which are given by their digests, a job searches and will
// publish a schedule. REQUIRES: the job of a network has its tasks.
size_t CountTuned(const v1::Job& job, absl::Span<const std::string> workloads,
                  absl::string_view target, double tolerance);

// Returns the job that tunes the most of the workloads; of several, the newest one. nullopt if
// there is none among the newest jobs of the server, if the server does not answer, or if it is
// private and has no worker: its jobs were interrupted, and nothing continues them now.
std::optional<RunningJob> FindRunningJob(Session& session, absl::Span<const std::string> workloads,
                                         absl::string_view target, double tolerance);

// Returns whether a job that has ended has searched for a schedule of any of the workloads, even if
// it measured nothing. Looks among the newest jobs of the server; false if the server does not
// answer.
bool WasTuned(Session& session, absl::Span<const std::string> workloads, absl::string_view target,
              double tolerance);

// A clause of an error message about `workloads` workloads: "job 12 is tuning one of them; hone
// jobs watch 12 follows the job".
std::string RunningJobText(const RunningJob& job, size_t workloads);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_TUNE_RUNNING_JOB_H_
