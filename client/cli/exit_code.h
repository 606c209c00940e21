#ifndef HONE_CLIENT_CLI_EXIT_CODE_H_
#define HONE_CLIENT_CLI_EXIT_CODE_H_

#include "absl/status/status.h"

namespace hone::cli {

// What `hone` ends with; scripts rely on the numbers.
enum ExitCode : int {
  kExitOk = 0,
  kExitFailed = 1,       // it was tried and did not work
  kExitUsage = 2,        // the command line, a workload or a file is wrong; nothing was tried
  kExitNotFound = 3,     // nothing is known of what was asked for
  kExitUnreachable = 4,  // the server cannot be reached or does not answer
};

// InvalidArgument and OutOfRange are the user's words; NotFound, Unavailable and DeadlineExceeded
// have their own codes; everything else failed.
ExitCode ExitCodeFor(const absl::Status& status);

}  // namespace hone::cli

#endif  // HONE_CLIENT_CLI_EXIT_CODE_H_
