#ifndef HONE_WORKER_AGENT_BOARD_CHECK_H_
#define HONE_WORKER_AGENT_BOARD_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::agent {

// One thing that a machine needs or lacks for measuring, as hone-worker --doctor prints it.
struct BoardFinding {
  std::string name;
  bool ok = true;
  std::string finding;
  std::string advice;  // "" if it is ok
};

// Looks at this machine: what hone-runner says of it, its memory, and the disk of `state_dir`.
// `runner` is the result of RunnerCommand. FailedPrecondition: hone-runner does not work.
absl::StatusOr<std::vector<BoardFinding>> CheckBoard(const std::vector<std::string>& runner,
                                                     const std::string& state_dir);

// A line for each finding, in the format of `hone doctor`, with its advice in the next line.
std::string ToText(const std::vector<BoardFinding>& findings);

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_BOARD_CHECK_H_
