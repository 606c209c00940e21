#ifndef HONE_WORKER_AGENT_MACHINE_H_
#define HONE_WORKER_AGENT_MACHINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

struct MachineOptions {
  std::string program_dir;  // folder of hone-builder and hone-runner; a missing one is not offered
  std::string state_dir;    // keeps the measured peaks for a day
  int build_slots = 0;      // 0: one per core
  bool build = true;        // offer building if hone-builder exists
  bool run = true;          // offer running if hone-runner exists
};

// Describes this machine: its target, its capabilities, its measured peaks and its environment.
// Starts hone-builder and hone-runner to query them. FailedPrecondition: program_dir has neither of
// them, or one does not work; the message says which.
absl::StatusOr<v1::Capabilities> DescribeMachine(const MachineOptions& options);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_MACHINE_H_
