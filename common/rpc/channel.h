#ifndef HONE_COMMON_RPC_CHANNEL_H_
#define HONE_COMMON_RPC_CHANNEL_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/rpc/security.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"

namespace hone::rpc {

// Limits of every call, both ways. Artifacts travel in chunks; the largest message is a page of
// records.
inline constexpr int kMaxMessageBytes = 16 << 20;
inline constexpr int kChunkBytes = 256 << 10;

// A peer that does not answer a ping within kKeepaliveTimeout is gone. The server accepts pings no
// closer than kKeepaliveServerMinimum, with or without calls.
inline constexpr absl::Duration kKeepaliveTime = absl::Seconds(30);
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(10);
inline constexpr absl::Duration kKeepaliveServerMinimum = absl::Seconds(20);

// What a call may take unless its method says otherwise. Every client call has a deadline.
inline constexpr absl::Duration kCallDeadline = absl::Seconds(30);

// A channel to a server ("unix:/path", "host:port"). It connects with the first call, and again
// after a loss with a backoff of 0.1 to 2 s. No HTTP proxy is used for local addresses. With
// security.ca the traffic is encrypted (TLS 1.2 or newer) and the server must show a certificate of
// these authorities for the host that was dialled; a Unix socket is never encrypted. The token goes
// with every call. InvalidArgument: malformed. PermissionDenied: see CheckAllowed.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(absl::string_view address,
                                                             const ChannelSecurity& security);
// Without encryption and token.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(absl::string_view address,
                                                             bool insecure);

// Gives the call `limit` from now. With wait_for_ready the call waits for a server that is
// starting; else it fails at once with Unavailable when there is none.
void SetDeadline(grpc::ClientContext& context, absl::Duration limit = kCallDeadline,
                 bool wait_for_ready = false);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_CHANNEL_H_
