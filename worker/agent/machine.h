#ifndef HONE_WORKER_AGENT_MACHINE_H_
#define HONE_WORKER_AGENT_MACHINE_H_

#include <string>

#include "absl/status/statusor.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

struct MachineOptions {
  std::string
      program_dir;        // holds hone-builder and hone-runner; one that is missing is not offered
  std::string state_dir;  // keeps the measured peaks for a day
  int build_slots = 0;    // 0: one per core
  bool build = true;      // offer building, when hone-builder is there
  bool run = true;        // offer running, when hone-runner is there
};

// What this machine offers: its target, what it can do, its measured peaks and its environment.
// Starts hone-builder and hone-runner to ask them. FailedPrecondition: neither of them is in
// program_dir, or one does not work; says which.
absl::StatusOr<v1::Capabilities> DescribeMachine(const MachineOptions& options);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_MACHINE_H_
