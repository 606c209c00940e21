#ifndef HONE_CLIENT_CLI_EXIT_CODE_H_
#define HONE_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace hone::cli {

// The exit codes of `hone`. Scripts rely on the numbers.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,       // the command failed
  kExitUsage = 2,        // the command line, a workload or a file is wrong; nothing was done
  kExitNotFound = 3,     // the server knows no result
  kExitUnreachable = 4,  // the server cannot be reached or does not answer
};

// InvalidArgument and OutOfRange are usage errors. NotFound, Unavailable and DeadlineExceeded have
// their own codes. All other errors are kExitFailed.
ExitCode ExitCodeFor(const absl::Status& status);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_EXIT_CODE_H_
