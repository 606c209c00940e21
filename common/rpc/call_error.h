#ifndef HONE_COMMON_RPC_CALL_ERROR_H_
#define HONE_COMMON_RPC_CALL_ERROR_H_

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"

namespace hone::rpc {

// Says in one sentence why a call to the server at `address` failed, and what to do, in the place
// of gRPC's message. gRPC does not say why an encrypted connection failed: with TLS, connects again
// (ProbeTls) for at most `probe_limit`; 0: does not connect.
// Unavailable: the server cannot be reached. DeadlineExceeded: it does not answer in time.
// FailedPrecondition: an encrypted connection cannot be made. Other errors are the server's own and
// are returned as they are.
absl::Status ExplainCallError(const absl::Status& status, absl::string_view address,
                              const ChannelSecurity& security, absl::Duration probe_limit);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_CALL_ERROR_H_
