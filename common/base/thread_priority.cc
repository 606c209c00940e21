#include "common/base/thread_priority.h"

#include <unistd.h>

#include <cerrno>

namespace hone {

void LowerThreadPriority(int steps) {
  // On Linux it is the thread's. Where it may not be lowered it stays as it is: that costs others
  // some of the time only.
  errno = 0;
  [[maybe_unused]] const int now = nice(steps);
}

}  // namespace hone
