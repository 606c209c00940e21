#ifndef HONE_WORKER_RUNNER_THROTTLE_WATCH_H_
#define HONE_WORKER_RUNNER_THROTTLE_WATCH_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace hone::runner {

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

#endif  // HONE_WORKER_RUNNER_THROTTLE_WATCH_H_
