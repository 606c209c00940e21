#ifndef HONE_WORKER_RUNNER_SCRATCH_FOLDER_H_
#define HONE_WORKER_RUNNER_SCRATCH_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone::runner {

// Makes an empty folder in `parent` for this process alone, and returns its path. Starts a small
// process, in its own session, that removes the folder when this process ends, however it ends.
// REQUIRES: only one thread exists. NotFound, PermissionDenied, ResourceExhausted: the folder or
// the process cannot be made.
absl::StatusOr<std::string> MakeScratchFolder(const std::string& parent);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_SCRATCH_FOLDER_H_
