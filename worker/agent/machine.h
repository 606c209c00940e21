#ifndef HONE_WORKER_AGENT_MACHINE_H_
#define HONE_WORKER_AGENT_MACHINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "common/target/device_list.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

struct MachineOptions {
  std::string device = "cpu";  // that it runs on: "cpu", "cuda:N" or "opencl:N"
  std::string program_dir;  // folder of hone-builder and hone-runner; a missing one is not offered
  std::string state_dir;    // keeps the measured peaks for a day
  int build_slots = 0;      // 0: one per core
  bool build = true;        // offer building if hone-builder exists
  bool run = true;          // offer running if hone-runner exists
};

// Asks hone-runner, the only process that loads drivers of devices. FailedPrecondition: it is not
// in `program_dir`, or does not work.
absl::StatusOr<target::DeviceList> ListDevices(const std::string& program_dir);

// Describes this machine: the target of its device, its capabilities, its measured peaks and its
// environment. Starts hone-builder and hone-runner to query them. FailedPrecondition: program_dir
// has neither of them, one does not work, or the machine has no such device; the message says
// which. InvalidArgument: the device is not one of the machine; the message lists them.
// Unavailable: other processes of Hone kept the timing lock for ten minutes, so that no peak could
// be measured.
absl::StatusOr<v1::Capabilities> DescribeMachine(const MachineOptions& options);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_MACHINE_H_
