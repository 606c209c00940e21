#include "common/rpc/resolve.h"

#include "absl/strings/str_cat.h"

namespace hone::rpc {

absl::StatusOr<AddressList> Resolve(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  const int failed =
      getaddrinfo(address.host.c_str(), absl::StrCat(address.port).c_str(), &hints, &list);
  if (failed == 0) return AddressList(list);
  return absl::UnavailableError(absl::StrCat("unknown host ", address.host, ": ",
                                             gai_strerror(failed), "; is the name right?"));
}

}  // namespace hone::rpc
