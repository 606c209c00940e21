#ifndef HONE_COMMON_BASE_MACHINE_LOAD_H_
#define HONE_COMMON_BASE_MACHINE_LOAD_H_

#include <optional>
#include <string>

namespace hone {

// How busy this machine is, and what that means for measurements.
struct MachineLoad {
  bool disturbs = false;  // programs besides Hone's are busy now
  std::string finding;    // the average number of runnable processes in the last minute
  std::string advice;     // names the busy programs; "" if there are none
};

// Returns the load of this machine; nullopt if the system does not report it. Takes up to a fifth
// of a second if the load is high. `root` replaces / in tests.
std::optional<MachineLoad> CheckLoad(const std::string& root = "");

}  // namespace hone

#endif  // HONE_COMMON_BASE_MACHINE_LOAD_H_
