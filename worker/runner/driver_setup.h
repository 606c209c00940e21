#ifndef HONE_WORKER_RUNNER_DRIVER_SETUP_H_
#define HONE_WORKER_RUNNER_DRIVER_SETUP_H_

#include <string>

#include "worker/runner/sandbox.h"

namespace hone::runner {

// Gives the drivers of GPUs what they need: access to the device files and descriptions of devices
// on this machine, and to the folders of LD_LIBRARY_PATH, and `scratch` as the folder for
// everything that they write. Changes environment variables: caches of compiled kernels are in
// `scratch` or switched off. Called before the driver is loaded and the sandbox is entered.
void PrepareForDriver(const std::string& scratch, SandboxOptions& sandbox);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_DRIVER_SETUP_H_
