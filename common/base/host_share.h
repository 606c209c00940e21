#ifndef HONE_COMMON_BASE_HOST_SHARE_H_
#define HONE_COMMON_BASE_HOST_SHARE_H_

#include <string>

#include "common/base/host_lock.h"

namespace hone {

// The host's timing lock, shared, so that what the holder computes disturbs no timing. After some
// seconds it returns a lock that holds nothing: the lock protects timings, not our progress. Not
// taken at all unless `respect`.
HostLock ShareHost(bool respect, const std::string& path = HostLock::DefaultPath());

// ShareHost for what the calling thread computes while this lives. One at a time in a thread.
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

// For whatever computes for long, every few ms: lets waiting timers go first when the calling
// thread has a HostShare, and costs a microsecond otherwise. As ShareHost it goes on after some
// seconds.
void YieldToTimers();

}  // namespace hone

#endif  // HONE_COMMON_BASE_HOST_SHARE_H_
