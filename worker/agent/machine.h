#ifndef HONE_WORKER_AGENT_MACHINE_H_
#define HONE_WORKER_AGENT_MACHINE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/host_lock.h"
#include "common/target/device_list.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

struct MachineOptions {
  std::string device = "cpu";  // "cpu", "cuda:N" or "opencl:N"
  std::string program_dir;     // folder of hone-builder; without it, the worker does not build
  std::string state_dir;       // keeps the measured peaks for a day
  int build_slots = 0;         // 0: one per core
  bool build = true;           // offer building if hone-builder exists
  // From RunnerCommand; empty: the worker does not run kernels.
  std::vector<std::string> runner;
  std::string lock = HostLock::DefaultPath();  // the host's timing lock, held for the peaks
};

// Lists the devices of this machine. Asks hone-runner, the only process that loads drivers.
// FailedPrecondition: hone-runner fails.
absl::StatusOr<target::DeviceList> ListDevices(const std::vector<std::string>& runner);

// Describes this machine: the target of its device, its capabilities, its measured peaks and its
// environment. Starts hone-builder and hone-runner to query them. FailedPrecondition: program_dir
// has neither of them, or one fails. Errors of DeviceList::Find: the machine has no such device.
// Unavailable: other processes of Hone held the timing lock for ten minutes, so the peaks could not
// be measured.
absl::StatusOr<v1::Capabilities> DescribeMachine(const MachineOptions& options);

// One check of `hone-worker --doctor`: something that measuring needs, and what was found.
struct BoardFinding {
  std::string name;
  bool ok = true;
  std::string finding;
  std::string advice;  // "" if it is ok
};

// Checks this machine: what hone-runner reports, its kinds of cores, the memory, the disk that
// holds `state_dir`, and the load by other programs. `runner` is the result of RunnerCommand.
// `root` replaces / for the load in tests. FailedPrecondition: hone-runner does not work.
absl::StatusOr<std::vector<BoardFinding>> CheckBoard(const std::vector<std::string>& runner,
                                                     const std::string& state_dir,
                                                     const std::string& root = "");

// Returns a line for each finding, in the format of `hone doctor`, with its advice on the next
// line.
std::string ToText(const std::vector<BoardFinding>& findings);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_MACHINE_H_
