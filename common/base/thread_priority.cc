#include "common/base/thread_priority.h"

#include <unistd.h>

#include <cerrno>

namespace hone {

void LowerThreadPriority(int steps) {
  // On Linux, nice applies to the calling thread. Failure only means that other threads wait
  // longer.
  errno = 0;
  [[maybe_unused]] const int now = nice(steps);
}

}  // namespace hone
