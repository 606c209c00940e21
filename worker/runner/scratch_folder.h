#ifndef HONE_WORKER_RUNNER_SCRATCH_FOLDER_H_
#define HONE_WORKER_RUNNER_SCRATCH_FOLDER_H_

#include <string>

#include "absl/status/statusor.h"

namespace hone::runner {

// Makes an empty folder in `parent` for this process alone; returns its path. A small process that
// this one starts, in a session of its own, removes the folder when this one ends, in whichever way
// it ends. REQUIRES: only one thread exists. NotFound, PermissionDenied, ResourceExhausted: the
// folder or the process cannot be made.
absl::StatusOr<std::string> MakeScratchFolder(const std::string& parent);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_SCRATCH_FOLDER_H_
