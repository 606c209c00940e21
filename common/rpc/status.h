#ifndef HONE_COMMON_RPC_STATUS_H_
#define HONE_COMMON_RPC_STATUS_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace hone::rpc {

// Convert between the statuses of Abseil and gRPC, whose codes have the same meanings and numbers.
// Messages are cut at 4000 bytes, because they are sent in a header of limited size. Payloads are
// converted as well (error_details.h).
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_STATUS_H_
