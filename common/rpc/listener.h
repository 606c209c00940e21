#ifndef HONE_COMMON_RPC_LISTENER_H_
#define HONE_COMMON_RPC_LISTENER_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/rpc/address.h"
#include "common/rpc/server_certificates.h"
#include "grpcpp/server_builder.h"

namespace hone::rpc {

// Calls in progress on one connection. A caller's further calls wait for one of them to end.
inline constexpr int kMaxStreams = 512;
// The headers of a call together.
inline constexpr int kMaxHeaderBytes = 8 << 10;
// How long a new connection may take until calls can be made on it, such as for its TLS handshake.
inline constexpr absl::Duration kHandshakeLimit = absl::Seconds(20);
// What gRPC may hold for all connections and calls of all servers of this process together: mostly
// messages that have not arrived completely, and answers that are not read. Near the limit it
// accepts less from each connection, and then ends calls with ResourceExhausted.
inline constexpr size_t kMaxBufferedBytes = size_t{1} << 30;

// Sets these limits, those of channel.h and the keepalive rules on a server. They apply before a
// caller is known.
void ConfigureServer(grpc::ServerBuilder& builder);

// Checks that a server can listen on a TCP address now, because gRPC does not say why it cannot.
// AlreadyExists: another program listens there. FailedPrecondition: it is not an address of this
// machine. PermissionDenied: the port needs a privilege. Unavailable: the host is unknown.
absl::Status CheckPortFree(const Address& address);

// Checks the same for an address of either kind. Errors are those of AddListener.
absl::Status CheckFree(const Address& address);

// Adds a listening address: a Unix socket, or a TCP port with the certificates that `certificates`
// has at the time of each connection, or without encryption if it has none. After BuildAndStart,
// *port is the TCP port, or 0 if it could not be bound; it is not changed for a Unix socket.
// REQUIRES: if it has certificates, `certificates` outlives the server.
// AlreadyExists: another server answers on that Unix socket, or the path is not a socket (a stale
// socket is replaced). NotFound, PermissionDenied: the socket's folder does not exist or is not
// writable. PermissionDenied: see CheckAllowed. Other errors are those of CheckPortFree.
absl::Status AddListener(grpc::ServerBuilder& builder, const Address& address,
                         ServerCertificates& certificates, int* port);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_LISTENER_H_
