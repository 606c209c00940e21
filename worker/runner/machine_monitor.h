#ifndef HONE_WORKER_RUNNER_MACHINE_MONITOR_H_
#define HONE_WORKER_RUNNER_MACHINE_MONITOR_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hone::runner {

// The contents of /proc/stat: time since boot, summed over all CPUs, in ticks.
struct CpuTimes {
  int64_t total = 0;
  int64_t busy = 0;   // used by this machine's processes
  int64_t steal = 0;  // taken by the host
  int cpus = 0;
};
// Returns all zeros if the text is malformed.
CpuTimes ParseCpuTimes(absl::string_view proc_stat);
// Returns the largest "cpu MHz" of /proc/cpuinfo; 0 if it is missing, or if a hypervisor is present
// and the value is not real.
double ParseMegahertz(absl::string_view proc_cpuinfo);

// Reads the machine's frequency, temperature and load from /proc and /sys. Values that the machine
// does not expose are 0. All files are opened in the constructor, so a sandbox entered later does
// not matter. Owned by the timing thread.
class MachineMonitor {
 public:
  // `root` replaces / in tests.
  explicit MachineMonitor(const std::string& root = "");
  ~MachineMonitor();
  MachineMonitor(const MachineMonitor&) = delete;
  MachineMonitor& operator=(const MachineMonitor&) = delete;

  struct State {
    double frequency_mhz = 0;
    double temperature_c = 0;  // hottest processor sensor
    double load = 0;   // mean number of running threads of other processes, over at most a minute
    double steal = 0;  // share of time taken by the host
  };
  // Returns the current state. Load and steal are measured since an earlier call, a quarter of a
  // second to a minute ago. `now_s` comes from any steady clock. `own_cpu_s` is the processor time
  // used by this process so far.
  State Look(double now_s, double own_cpu_s);
  // The same, using the clocks of this process.
  State Look();

 private:
  struct Past {
    double now_s = 0;
    double own_cpu_s = 0;
    CpuTimes times;
  };
  static std::string ReadAgain(int fd);

  int stat_ = -1;
  int cpuinfo_ = -1;
  int frequency_ = -1;
  std::vector<int> temperatures_;
  std::deque<Past> past_;
};

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_MACHINE_MONITOR_H_
