#ifndef HONE_COMMON_RPC_ADDRESS_H_
#define HONE_COMMON_RPC_ADDRESS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace hone::rpc {

// Where a server listens or a client dials. A value type. Text forms:
//   unix:/run/hone.sock     a Unix socket; the path is at most 107 bytes, a limit of the kernel
//   localhost:7070          a TCP port; a server may ask for port 0 and is told which one it got
//   [::1]:7070              the same with an IPv6 address
struct Address {
  std::string path;  // of a Unix socket; "" for TCP
  std::string host;
  int port = 0;

  bool IsUnix() const { return !path.empty(); }
  // A Unix socket or a loopback address: what stays on this machine. A name counts only when it is
  // "localhost".
  bool IsLocal() const;
  // The form that Parse reads and gRPC takes.
  std::string ToText() const;
  // InvalidArgument: neither form, a URL, a port outside [0, 65535], or a path that is too long;
  // the message shows the text.
  static absl::StatusOr<Address> Parse(absl::string_view text);

  friend bool operator==(const Address&, const Address&) = default;
};

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_ADDRESS_H_
