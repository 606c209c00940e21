#ifndef HONE_CLIENT_CLI_RUN_JOB_H_
#define HONE_CLIENT_CLI_RUN_JOB_H_

#include "absl/status/statusor.h"
#include "client/cli/session.h"
#include "client/lib/api.h"

namespace hone::cli {

// Creates a job and follows it to its end, with its progress on standard error. The first Ctrl-C
// lets it confirm the finalists and end, the second one ends it at once. A private server gets a
// worker, once it has found nothing wrong with the job, and the worker is waited for. Returns the
// job's last state, whatever it came to; errors are those of the connection and of the private
// server.
absl::StatusOr<client::Job> RunJob(Session& session, const client::JobSpec& spec);

// What Ctrl-C does to a job that is followed.
enum class OnInterrupt {
  kConfirm,  // lets it confirm and end; twice ends it
  kLeave,    // ends the following alone
};
// Follows a job to its end, with its progress on standard error; returns its last state. Cancelled:
// it was left.
absl::StatusOr<client::Job> FollowJob(Session& session, const client::Job& job,
                                      OnInterrupt on_interrupt);

// "3 ok, 1 wrong_output".
std::string OutcomesText(const client::Job& job);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_RUN_JOB_H_
