#ifndef HONE_COMMON_RPC_RESOLVE_H_
#define HONE_COMMON_RPC_RESOLVE_H_

#include <netdb.h>

#include <memory>

#include "absl/status/statusor.h"
#include "common/rpc/address.h"

namespace hone::rpc {

struct FreeAddresses {
  void operator()(addrinfo* list) const { freeaddrinfo(list); }
};
using AddressList = std::unique_ptr<addrinfo, FreeAddresses>;

// Looks up the socket addresses of a TCP address. Unavailable: the host is unknown.
absl::StatusOr<AddressList> Resolve(const Address& address);

}  // namespace hone::rpc

#endif  // HONE_COMMON_RPC_RESOLVE_H_
