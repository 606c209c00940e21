#ifndef HONE_COMMON_RPC_ACCEPTOR_H_
#define HONE_COMMON_RPC_ACCEPTOR_H_

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/address.h"
#include "common/rpc/connections.h"
#include "common/rpc/server_certificates.h"
#include "grpcpp/server_builder.h"

namespace hone::rpc {

// The other end of a TCP connection, as Connections counts it.
struct PeerNames {
  std::string host;  // for IPv6 the network, because one host may use all of its addresses
  std::string peer;  // as PlainPeer returns it
};
PeerNames PeerNamesOf(const sockaddr_storage& address);

// Listens on a TCP address for a gRPC server and hands over the connections that Connections
// admits, because gRPC 1.51 has no limit of their number. A thread of its own accepts them, and
// notices their ends: it keeps a second descriptor of each connection. One thread at a time may
// call its methods.
class Acceptor {
 public:
  // Listens; "0.0.0.0" and "[::]" mean all addresses of this machine, of both kinds. REQUIRES:
  // `connections` outlives the result. PermissionDenied: see CheckAllowed. Other errors are those
  // of CheckPortFree.
  static absl::StatusOr<std::unique_ptr<Acceptor>> Listen(const Address& address,
                                                          const ServerSecurity& security,
                                                          Connections* connections);
  ~Acceptor();

  int port() const { return port_; }
  // Lets the server that is being built take the connections. Called before BuildAndStart.
  void AddTo(grpc::ServerBuilder& builder, ServerCertificates& certificates);
  // Begins to accept. Called once, after the server has started.
  void Start();
  // Accepts no more connections; the existing ones continue. Called before the server is shut down.
  // Does nothing if it was called before.
  void Stop();

 private:
  explicit Acceptor(Connections* connections);
  // Returns the error number if it cannot listen, or else 0.
  int Bind(const sockaddr& address, socklen_t size);
  // Returns whether it succeeds.
  bool Watch(int descriptor, uint32_t events, uint64_t tag);
  void Loop();
  // Accepts some of the waiting connections.
  void Accept(int listening);
  void TakeIn(int connection, const sockaddr_storage& peer, int listening);
  // Forgets a connection that has ended.
  void Forget(int64_t connection);

  Connections* const connections_;
  const int poll_;
  const int wake_;
  int port_ = 0;
  std::vector<int> listening_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> server_;
  absl::flat_hash_map<int64_t, int> watched_;  // second descriptors; used only by the thread
  std::thread thread_;
};

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_ACCEPTOR_H_
