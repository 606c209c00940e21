#ifndef HONE_CLIENT_LIB_CALL_ERROR_H_
#define HONE_CLIENT_LIB_CALL_ERROR_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/rpc/security.h"

namespace hone::client {

// Explains the error of a call to a user: names the address, says what may be wrong and what to do.
// If an encrypted connection could not be made, connects once more to find out why, and returns
// FailedPrecondition if it did. Errors that the server itself returned are left unchanged.
absl::Status ExplainCallError(const absl::Status& status, const std::string& address,
                              const rpc::ChannelSecurity& security);

// The cause at the end of gRPC's message about a failed connection: "Connection refused". Other
// messages are returned unchanged.
absl::string_view CauseOf(absl::string_view grpc_message);

}  // namespace hone::client

#endif  // HONE_CLIENT_LIB_CALL_ERROR_H_
