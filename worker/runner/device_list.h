#ifndef HONE_WORKER_RUNNER_DEVICE_LIST_H_
#define HONE_WORKER_RUNNER_DEVICE_LIST_H_

#include "common/target/device_list.h"

namespace hone::runner {

// Returns the devices of this machine. Loads the drivers of GPUs into this process.
target::DeviceList ListDevices();

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_DEVICE_LIST_H_
