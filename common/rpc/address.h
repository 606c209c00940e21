#ifndef HONE_COMMON_RPC_ADDRESS_H_
#define HONE_COMMON_RPC_ADDRESS_H_

#include <netdb.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::rpc {

// The address on which a server listens or to which a client connects. Text forms:
//   unix:/run/hone.sock     a Unix socket; the kernel limits the path to 107 bytes
//   localhost:7070          a TCP port; a server that listens on port 0 gets a free port
//   [::1]:7070              the same with an IPv6 address
struct Address {
  std::string path;  // of a Unix socket; "" for TCP
  std::string host;
  int port = 0;

  bool IsUnix() const { return !path.empty(); }
  // Whether traffic stays on this machine: the address is a Unix socket, a loopback address or the
  // name "localhost". Other names are not looked up.
  bool IsLocal() const;
  // Returns the text form, which both Parse and gRPC accept.
  std::string ToText() const;
  // Parses a text form. InvalidArgument: the text has none of these forms, is a URL, or has a port
  // outside [0, 65535] or a path that is too long; the message contains the text.
  static absl::StatusOr<Address> Parse(absl::string_view text);

  friend bool operator==(const Address&, const Address&) = default;
};

// Parses the addresses of a leader and its standbys, separated by commas: "a:7070,b:7070". The
// result is never empty. InvalidArgument: see Address::Parse, or Unix sockets and TCP addresses are
// mixed.
absl::StatusOr<std::vector<Address>> ParseAddresses(absl::string_view text);

// Returns gRPC's text for the other end of a connection without its encoding:
// "ipv6:%5Bfe80::1%252%5D:5000" is "[fe80::1%2]:5000", where 2 is the interface of a link-local
// address.
std::string PlainPeer(absl::string_view peer);

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

// Looks up the socket addresses of a TCP address. Unavailable: the host is unknown.
absl::StatusOr<AddressList> Resolve(const Address& address);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_ADDRESS_H_
