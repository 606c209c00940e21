#ifndef HONE_COMMON_RPC_GRPC_LOG_H_
#define HONE_COMMON_RPC_GRPC_LOG_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::rpc {

// A server learns only from gRPC's log of callers whose TLS handshakes fail. To a caller, the error
// of the call says what is wrong (call_error.h).
enum class GrpcLog { kServer, kCaller };

// Sends gRPC's own messages through our log, the same message at most once in ten seconds. A
// server's errors are warnings; a caller's are debug messages. Called once by a program's main.
void TakeGrpcLog(GrpcLog program);

// What is logged of a message of gRPC; "" if it is of no use. For tests.
std::string ExplainGrpcMessage(absl::string_view message);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_GRPC_LOG_H_
