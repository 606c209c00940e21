#ifndef HONE_COMMON_RPC_GRPC_LOG_H_
#define HONE_COMMON_RPC_GRPC_LOG_H_

#include <string>

#include "absl/strings/string_view.h"

namespace hone::rpc {

// Sends gRPC's own words through our log, the same message at most once in ten seconds. A failed
// TLS handshake is a warning that says what may be wrong. Called once by a program's main.
void TakeGrpcLog();

// What is logged of a message of gRPC; "" if it would be of no use. For tests.
std::string ExplainGrpcMessage(absl::string_view message);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_GRPC_LOG_H_
