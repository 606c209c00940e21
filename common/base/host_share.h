#ifndef HONE_COMMON_BASE_HOST_SHARE_H_
#define HONE_COMMON_BASE_HOST_SHARE_H_

#include <string>

#include "common/base/host_lock.h"

namespace hone {

// Takes the host's timing lock in shared mode. After a few seconds it gives up and returns a lock
// that holds nothing, so that a stuck timer cannot block the caller. With `respect` false it does
// not try.
HostLock ShareHost(bool respect, const std::string& path = HostLock::DefaultPath());

// Holds ShareHost's lock for the calling thread. At most one per thread at a time.
class HostShare {
 public:
  explicit HostShare(bool respect, const std::string& path = HostLock::DefaultPath());
  ~HostShare();
  HostShare(const HostShare&) = delete;
  HostShare& operator=(const HostShare&) = delete;

 private:
  friend void YieldToTimers();
  HostLock lock_;
};

// Lets waiting timers go first if the calling thread has a HostShare. Long computations call it
// every few milliseconds; it costs about a microsecond otherwise. Like ShareHost, it gives up after
// a few seconds.
void YieldToTimers();

}  // namespace hone

#endif  // HONE_COMMON_BASE_HOST_SHARE_H_
