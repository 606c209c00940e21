#ifndef HONE_COMMON_RPC_CALL_ERROR_H_
#define HONE_COMMON_RPC_CALL_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"

namespace hone::rpc {

// Replaces gRPC's message about a failed call to the server at `address` by one sentence that says
// why it failed and what to do. gRPC does not say why an encrypted connection failed, so with TLS
// this function connects again (ProbeTls) for at most `probe_limit`, unless that is 0.
// Unavailable: the server cannot be reached, or an encrypted connection cannot be made.
// DeadlineExceeded: it does not answer in time. Errors from the server itself are returned
// unchanged.
absl::Status ExplainCallError(const absl::Status& status, absl::string_view address,
                              const ChannelSecurity& security, absl::Duration probe_limit);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_CALL_ERROR_H_
