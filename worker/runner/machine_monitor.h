#ifndef HONE_WORKER_RUNNER_MACHINE_MONITOR_H_
#define HONE_WORKER_RUNNER_MACHINE_MONITOR_H_

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/record.h"

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

  // Returns the current state: the temperature of the hottest processor sensor, the mean number of
  // running threads of other processes, and the share of time taken by the host. Load and steal are
  // measured since an earlier call, a quarter of a
  // second to a minute ago. `now_s` comes from any steady clock. `own_cpu_s` is the processor time
  // used by this process so far.
  record::MachineState Look(double now_s, double own_cpu_s);
  // The same, using the clocks of this process.
  record::MachineState Look();

 private:
  struct Past {
    double now_s = 0;
    double own_cpu_s = 0;
    CpuTimes times;
  };

  int stat_ = -1;
  int cpuinfo_ = -1;
  int frequency_ = -1;
  std::vector<int> temperatures_;
  std::deque<Past> past_;
};

// Detects whether the processor is slowed down because it is too hot, because the system lowers its
// clock to cool it, or because the firmware of a Raspberry Pi limits its clock or reports a low
// supply voltage. Timings are then too long. All files are opened in the constructor, so a sandbox
// entered later does not matter. Owned by the timing thread.
class ThrottleWatch {
 public:
  // `root` replaces / in tests.
  explicit ThrottleWatch(const std::string& root = "");
  ~ThrottleWatch();
  ThrottleWatch(const ThrottleWatch&) = delete;
  ThrottleWatch& operator=(const ThrottleWatch&) = delete;

  // Returns why the processor is slowed down now, such as "the processor is at 82 °C, and slows
  // down above 80 °C"; "" if it is not, or if that is unknown. A zone that has reached its limit
  // counts as too hot until it is 3 °C below the limit.
  std::string Reason();

  // Returns the number of sources that can report throttling; 0 if it cannot be detected here.
  int sources() const;

 private:
  struct Zone {
    int fd = -1;
    double limit_c = 0;
    bool hot = false;
  };
  std::vector<Zone> zones_;
  std::vector<int> cooling_;  // open files: the states of the devices that lower clocks
  int firmware_ = -1;         // open file: the flags of the Raspberry Pi's firmware
};

// Waits in steps until the processor is no longer slowed down, or until `limit` has passed. Returns
// the reason at the beginning; "" if there was none.
std::string PauseWhileThrottled(ThrottleWatch& watch, absl::Duration limit,
                                absl::FunctionRef<void(absl::Duration)> sleep);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_MACHINE_MONITOR_H_
