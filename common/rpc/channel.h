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

// Limits of every call in both directions. Artifacts are sent in chunks; the largest message is a
// page of records.
inline constexpr int kMaxMessageBytes = 16 << 20;
inline constexpr int kChunkBytes = 256 << 10;

// An idle connection is pinged after kKeepaliveTime. A peer that does not answer within
// kKeepaliveTimeout is lost. A channel to a leader and its standbys pings more often: of a leader
// that hangs, the kernel still answers, and the calls must fail soon enough to be made again at the
// next leader. The server requires at least kKeepaliveServerMinimum between two pings, even if no
// call is active.
inline constexpr absl::Duration kKeepaliveTime = absl::Seconds(30);
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(10);
inline constexpr absl::Duration kLeaderKeepaliveTime = absl::Seconds(5);
inline constexpr absl::Duration kLeaderKeepaliveTimeout = absl::Seconds(6);
inline constexpr absl::Duration kKeepaliveServerMinimum = absl::Seconds(3);

// The deadline of calls whose methods do not define another one. Every client call has a deadline.
inline constexpr absl::Duration kCallDeadline = absl::Seconds(30);

// Creates a channel to a server ("unix:/path", "host:port"), or to a leader and its standbys: their
// addresses, separated by commas, or a host name with several addresses. Of several, the channel
// uses the one whose health check says that it serves, which is the leader, and so finds the next
// leader. The host names of a list are looked up once, here; a single name again and again.
//
// It connects with the first call, and reconnects after a loss with a backoff of 0.1 to 2 s. No
// HTTP proxy is used for local addresses. A compressed answer fails: gRPC would decompress it
// without a limit, and so a hostile server could use up the memory.
// If security.ca is set, the traffic is encrypted (TLS 1.2 or newer), and the server must have a
// certificate for the host of the address, issued by one of these authorities. A Unix socket is
// never encrypted. The token is sent with every call. InvalidArgument: the address is malformed, or
// a list has several hosts, and security.server_name does not say which name their certificates
// share.
// PermissionDenied: see CheckAllowed. Unavailable: the same for a host that is unknown.
absl::StatusOr<std::shared_ptr<grpc::Channel>> CreateChannel(absl::string_view address,
                                                             const ChannelSecurity& security);

// Sets the call's deadline to `limit` from now. If wait_for_ready, the call waits for a server that
// is starting; otherwise it fails at once with Unavailable if no server listens.
void SetDeadline(grpc::ClientContext& context, absl::Duration limit = kCallDeadline,
                 bool wait_for_ready = false);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_CHANNEL_H_
