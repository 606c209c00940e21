#ifndef HONE_COMMON_RPC_STATUS_H_
#define HONE_COMMON_RPC_STATUS_H_

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"
#include "grpcpp/support/status.h"

namespace hone::rpc {

// Convert between the statuses of Abseil and gRPC, whose codes have the same meanings and numbers.
// Messages are cut at 4000 bytes, because they are sent in a header of limited size. Payloads are
// converted as well (DecodeDetails()).
grpc::Status ToGrpc(const absl::Status& status);
absl::Status FromGrpc(const grpc::Status& status);

// Machine-readable details of an error (AIP-193). They are payloads of the absl::Status, and are
// sent as google.rpc.Status in the call's trailer.

// Adds and reads the time to wait before a retry (google.rpc.RetryInfo).
absl::Status WithRetryAfter(absl::Status status, absl::Duration wait);
std::optional<absl::Duration> RetryAfter(const absl::Status& status);

// Adds the reason, one word like "TOKEN_MISSING", with names and values (google.rpc.ErrorInfo of
// the domain "hone").
absl::Status WithReason(absl::Status status, absl::string_view reason,
                        const std::map<std::string, std::string>& metadata = {});
// Returns the reason; "" if there is none.
std::string ReasonOf(const absl::Status& status);

// Returns the payloads as the bytes of a google.rpc.Status; "" if there are none.
std::string EncodeDetails(const absl::Status& status);
// Adds the payloads of such bytes. Malformed bytes are ignored.
void DecodeDetails(absl::string_view bytes, absl::Status& status);

// Replaces gRPC's message about a failed call to the server at `address` by one sentence that says
// why it failed and what to do. gRPC does not say why an encrypted connection failed, so with TLS
// this function connects again (ProbeTls) for at most `probe_limit`, unless that is 0.
// Unavailable: the server cannot be reached, or an encrypted connection cannot be made.
// DeadlineExceeded: it does not answer in time. Errors from the server itself are returned
// unchanged.
absl::Status ExplainCallError(const absl::Status& status, absl::string_view address,
                              const ChannelSecurity& security, absl::Duration probe_limit);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_STATUS_H_
