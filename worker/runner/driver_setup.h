#ifndef HONE_WORKER_RUNNER_DRIVER_SETUP_H_
#define HONE_WORKER_RUNNER_DRIVER_SETUP_H_

#include <string>

#include "worker/runner/sandbox.h"

namespace hone::runner {

// Gives GPU drivers what they need: access to the device files and device descriptions of this
// machine and to the folders of LD_LIBRARY_PATH, and `scratch` as the only folder to write to. Sets
// environment variables that put caches of compiled kernels into `scratch` or switch them off.
// REQUIRES: the driver is not loaded and the sandbox is not entered yet.
void PrepareForDriver(const std::string& scratch, SandboxOptions& sandbox);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_DRIVER_SETUP_H_
