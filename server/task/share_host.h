#ifndef HONE_SERVER_TASK_SHARE_HOST_H_
#define HONE_SERVER_TASK_SHARE_HOST_H_

#include "common/base/host_lock.h"

namespace hone::task {

// The host's timing lock, shared, so that what the holder computes disturbs no timing. After some
// seconds it returns a lock that holds nothing: the lock protects timings, not our progress. Not
// taken at all unless `respect`.
HostLock ShareHost(bool respect);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_SHARE_HOST_H_
