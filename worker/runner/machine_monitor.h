#ifndef HONE_WORKER_RUNNER_MACHINE_MONITOR_H_
#define HONE_WORKER_RUNNER_MACHINE_MONITOR_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace hone::runner {

// What /proc/stat says: time since the start of the machine, all CPUs together, in its ticks.
struct CpuTimes {
  int64_t total = 0;
  int64_t busy = 0;   // of this machine's processes
  int64_t steal = 0;  // taken by the host
  int cpus = 0;
};
// All zero when the text is none.
CpuTimes ParseCpuTimes(absl::string_view proc_stat);
// The largest "cpu MHz" of /proc/cpuinfo; 0 when there is none, or a hypervisor made it up.
double ParseMegahertz(absl::string_view proc_cpuinfo);

// How fast, hot and busy the machine is, read from /proc and /sys. What the machine hides is 0.
// Everything is opened at once, so that a sandbox entered later does not matter. Owned by the
// timing thread.
class MachineMonitor {
 public:
  // `root`: a folder that stands for /, in tests.
  explicit MachineMonitor(const std::string& root = "");
  ~MachineMonitor();
  MachineMonitor(const MachineMonitor&) = delete;
  MachineMonitor& operator=(const MachineMonitor&) = delete;

  struct State {
    double frequency_mhz = 0;
    double temperature_c = 0;  // the hottest sensor of the processor
    double load = 0;           // mean number of others' threads that ran, over a minute at most
    double steal = 0;          // share of the time that the host took away
  };
  // The state now; load and steal since an earlier look, a quarter of a second to a minute old.
  // `now_s`: of any steady clock. `own_cpu_s`: processor time of this process so far.
  State Look(double now_s, double own_cpu_s);
  // The same by the clocks of this process.
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
