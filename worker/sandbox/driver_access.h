#ifndef HONE_WORKER_SANDBOX_DRIVER_ACCESS_H_
#define HONE_WORKER_SANDBOX_DRIVER_ACCESS_H_

#include "absl/status/status.h"
#include "worker/sandbox/sandbox.h"

namespace hone::sandbox {

// Gives GPU drivers what they need: access to the device files and device descriptions of this
// machine and to the folders of LD_LIBRARY_PATH, and an empty scratch folder of this process as the
// only one to write to. Sets environment variables that put caches of compiled kernels into it or
// switch them off. A small process, in its own session, removes the folder when this process ends,
// however it ends. REQUIRES: only one thread exists, the driver is not loaded and the sandbox is
// not entered yet. NotFound, PermissionDenied, ResourceExhausted: the folder or the process cannot
// be made.
absl::Status PrepareForDriver(SandboxOptions& sandbox);

}  // namespace hone::sandbox

#endif  // HONE_WORKER_SANDBOX_DRIVER_ACCESS_H_
