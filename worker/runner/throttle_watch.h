#ifndef HONE_WORKER_RUNNER_THROTTLE_WATCH_H_
#define HONE_WORKER_RUNNER_THROTTLE_WATCH_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace hone::runner {

// Detects whether the processor is slowed down: because it is too hot, because the system cools it
// by lowering its clocks, or because the power supply of a Raspberry Pi is too weak. Timings would
// then not show how fast a kernel is. All files are opened in the constructor, so a sandbox entered
// later does not matter. Owned by the timing thread.
class ThrottleWatch {
 public:
  // `root` replaces / in tests.
  explicit ThrottleWatch(const std::string& root = "");
  ~ThrottleWatch();
  ThrottleWatch(const ThrottleWatch&) = delete;
  ThrottleWatch& operator=(const ThrottleWatch&) = delete;

  // Returns why the processor is slowed down now: "the processor is at 82 °C, and is slowed down
  // from 80 °C on"; "" if it is not, or if that is unknown. A zone that was too hot counts as hot
  // until it is 3 °C cooler.
  std::string Reason();

  // Returns the number of sources that report throttling; 0: it cannot be detected here.
  int sources() const;

 private:
  struct Zone {
    int fd = -1;
    double limit_c = 0;
    bool hot = false;
  };
  std::vector<Zone> zones_;
  std::vector<int> cooling_;  // states of the devices that lower clocks
  int firmware_ = -1;         // flags of the Raspberry Pi's firmware
};

// Waits in steps until there is no Reason any more, or until `limit` has passed. Returns the reason
// at the beginning; "" if it did not wait.
std::string PauseWhileThrottled(ThrottleWatch& watch, absl::Duration limit,
                                absl::FunctionRef<void(absl::Duration)> sleep);

}  // namespace hone::runner

#endif  // HONE_WORKER_RUNNER_THROTTLE_WATCH_H_
