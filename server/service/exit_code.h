#ifndef HONE_SERVER_SERVICE_EXIT_CODE_H_
#define HONE_SERVER_SERVICE_EXIT_CODE_H_

#include "absl/status/status.h"
#include "common/base/command_line.h"

namespace hone::service {

// The exit code of `hone-server` for an error: wrong usage, such as a name that cannot be used or a
// missing file, or else a failure.
inline int ExitCodeFor(const absl::Status& status) {
  if (status.ok()) return 0;
  return absl::IsInvalidArgument(status) || absl::IsNotFound(status) ? kUsageExitCode : 1;
}

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_EXIT_CODE_H_
