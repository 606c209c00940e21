#ifndef HONE_WORKER_AGENT_BOARD_CHECK_H_
#define HONE_WORKER_AGENT_BOARD_CHECK_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace hone::agent {

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

#endif  // HONE_WORKER_AGENT_BOARD_CHECK_H_
