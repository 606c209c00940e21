#ifndef HONE_COMMON_BASE_BUSY_PROCESSES_H_
#define HONE_COMMON_BASE_BUSY_PROCESSES_H_

#include <string>
#include <vector>

namespace hone {

// A process with threads that run, or wait for a core or a disk, at this moment.
struct BusyProcess {
  int pid = 0;
  // In full if its command line shows it. Consists of letters, digits and "-_.+:"; other characters
  // are replaced by "?".
  std::string name;
  int threads = 0;  // those that are busy
};

// Returns the processes that load this machine now, those with the most busy threads first. Leaves
// out Hone's programs, process 1 and the threads of the kernel.
// `root` replaces / in tests.
std::vector<BusyProcess> BusyProcesses(const std::string& root = "");

}  // namespace hone

#endif  // HONE_COMMON_BASE_BUSY_PROCESSES_H_
