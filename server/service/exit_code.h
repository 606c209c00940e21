#ifndef HONE_SERVER_SERVICE_EXIT_CODE_H_
#define HONE_SERVER_SERVICE_EXIT_CODE_H_

#include "absl/status/status.h"
#include "common/base/command_line.h"

namespace hone::service {

// Returns the exit code of `hone-server`: kUsageExitCode for wrong usage, such as a bad argument or
// a missing file, and 1 for other errors.
inline int ExitCodeFor(const absl::Status& status) {
  if (status.ok()) return 0;
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? kUsageExitCode : 1;
}

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_EXIT_CODE_H_
