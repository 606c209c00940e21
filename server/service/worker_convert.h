#ifndef HONE_SERVER_SERVICE_WORKER_CONVERT_H_
#define HONE_SERVER_SERVICE_WORKER_CONVERT_H_

#include "absl/status/statusor.h"
#include "hone/v1/worker.pb.h"
#include "server/fleet/worker.h"

namespace hone::service {

// Limits of what workers send in one call.
inline constexpr int kMaxLeasesPerWorker = 4096;
inline constexpr int kMaxSlots = 1024;

// InvalidArgument, naming the field: a missing id, epoch or target, a number out of range, a list
// over its limit, a key that is not that of its target. A result that record::FromProto refuses
// becomes FinishedLease::malformed.
absl::StatusOr<fleet::WorkerReport> FromProto(const v1::SynchronizeRequest& request);
v1::SynchronizeResponse ToProto(const fleet::SynchronizeReply& reply);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_WORKER_CONVERT_H_
