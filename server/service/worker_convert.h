#ifndef HONE_SERVER_SERVICE_WORKER_CONVERT_H_
#define HONE_SERVER_SERVICE_WORKER_CONVERT_H_

#include "absl/status/statusor.h"
#include "hone/v1/worker.pb.h"
#include "server/fleet/worker.h"

namespace hone::service {

// Limits of one call of a worker.
inline constexpr int kMaxLeasesPerWorker = 4096;
inline constexpr int kMaxSlots = 1024;

// InvalidArgument: an id, epoch or target is missing, a number is out of range, a list is over its
// limit, or a key does not belong to its target; the message names the field. If record::FromProto
// refuses a result, its error is stored in FinishedLease::malformed.
absl::StatusOr<fleet::WorkerReport> FromProto(const v1::SynchronizeRequest& request);
v1::SynchronizeResponse ToProto(const fleet::SynchronizeReply& reply);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_WORKER_CONVERT_H_
