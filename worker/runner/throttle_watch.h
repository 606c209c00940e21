#ifndef HONE_WORKER_RUNNER_THROTTLE_WATCH_H_
#define HONE_WORKER_RUNNER_THROTTLE_WATCH_H_

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"

namespace hone::runner {

// Tells whether this machine slows its processor down: because it is too hot, because the kernel
// cools it by lower clocks, or because the supply of a Raspberry Pi is too weak. A timing would
// then show the weather instead of the kernel. All files are opened in the constructor, so a
// sandbox entered later does not matter. Owned by the timing thread.
class ThrottleWatch {
 public:
  // `root` replaces / in tests.
  explicit ThrottleWatch(const std::string& root = "");
  ~ThrottleWatch();
  ThrottleWatch(const ThrottleWatch&) = delete;
  ThrottleWatch& operator=(const ThrottleWatch&) = delete;

  // Why the processor is slowed down now, in words: "the processor is at 82 °C, and is slowed down
  // from 80 °C on"; "" if it is not, or if the machine does not say. A zone that was too hot counts
  // as hot until it is 3 °C cooler.
  std::string Reason();

  // The number of sources that the machine offers; 0: throttling cannot be seen here.
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
