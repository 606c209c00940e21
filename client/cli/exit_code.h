#ifndef HONE_CLIENT_CLI_EXIT_CODE_H_
#define HONE_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace hone::cli {

// The exit codes of `hone`. Scripts rely on the numbers.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,
  kExitUsage = 2,  // nothing was done
  kExitNothingKnown = 3,
  kExitUnreachable = 4,
  kExitInconclusive = 5,   // what was asked could not be found out; asking again may help
  kExitDrift = 6,          // the server does not have what a lock file names
  kExitInterrupted = 130,  // what shells report for a program that SIGINT ended
};

struct ExitCodeInfo {
  ExitCode code;
  absl::string_view meaning;
};
// All exit codes with their meanings, for the help.
absl::Span<const ExitCodeInfo> ExitCodes();

// Returns the error with an exit code that replaces the one of its status code. OK is returned
// unchanged.
absl::Status WithExitCode(absl::Status status, ExitCode code);

// The exit code of an error: the one that WithExitCode has set, or else the one of its status code,
// from the table in exit_code.cc.
ExitCode ExitCodeFor(const absl::Status& status);

// NotFound with kExitNothingKnown: the server has no result for a valid question. Any other
// NotFound, such as a missing file or an unknown name, is a usage error. A command that lists
// records, jobs, workers or pins succeeds even if the list is empty.
absl::Status NothingKnownError(absl::string_view message);

// FailedPrecondition with kExitInconclusive: a measurement says nothing, because other work
// disturbed it.
absl::Status InconclusiveError(absl::string_view message);

// FailedPrecondition with kExitDrift: the kernels of a lock file cannot be used.
absl::Status DriftError(absl::string_view message);

// Cancelled with kExitInterrupted: the user interrupted the command.
absl::Status InterruptedError(absl::string_view message);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_EXIT_CODE_H_
