#ifndef HONE_COMMON_RPC_GRPC_LOG_H_
#define HONE_COMMON_RPC_GRPC_LOG_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::rpc {

// Who takes gRPC's log. A server learns of callers whose TLS handshakes fail only from this log; a
// caller gets an error from the call (status.h).
enum class GrpcLog { kServer, kCaller };

// Writes gRPC's messages to our log, but the same message at most once in ten seconds. Errors are
// logged as warnings in a server, and as debug messages in a caller. Called once by a program's
// main.
void TakeGrpcLog(GrpcLog program);

// Returns the text that is logged for a message of gRPC; "" if the message is not logged. For
// tests.
std::string ExplainGrpcMessage(absl::string_view message);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_GRPC_LOG_H_
