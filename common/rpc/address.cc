#include "common/rpc/address.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"

namespace hone::rpc {
namespace {

absl::Status Malformed(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("address '", text, "': ", why, "; write unix:/path, host:port or [ipv6]:port"));
}

}  // namespace

std::string PlainPeer(absl::string_view peer) {
  if (!absl::ConsumePrefix(&peer, "ipv4:")) absl::ConsumePrefix(&peer, "ipv6:");
  return absl::StrReplaceAll(peer, {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
}

bool Address::IsLocal() const {
  if (IsUnix() || host == "localhost") return true;
  in_addr v4;
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6;
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string Address::ToText() const {
  if (IsUnix()) return absl::StrCat("unix:", path);
  if (absl::StrContains(host, ':')) return absl::StrCat("[", host, "]:", port);
  return absl::StrCat(host, ":", port);
}

absl::StatusOr<Address> Address::Parse(absl::string_view text) {
  Address address;
  absl::string_view rest = text;
  if (absl::ConsumePrefix(&rest, "unix:")) {
    if (absl::StartsWith(rest, "//")) rest.remove_prefix(2);  // unix:///path, the form of a URL
    if (rest.empty()) return Malformed(text, "the path is missing");
    if (rest.size() >= sizeof(sockaddr_un::sun_path)) {
      return Malformed(text, absl::StrCat("the path is longer than ",
                                          sizeof(sockaddr_un::sun_path) - 1, " bytes"));
    }
    address.path = std::string(rest);
    return address;
  }
  if (const size_t scheme = rest.find("://"); scheme != absl::string_view::npos) {
    const absl::string_view url_host =
        rest.substr(scheme + 3, rest.find('/', scheme + 3) - scheme - 3);
    return absl::InvalidArgumentError(absl::StrCat(
        "address '", text, "' is a URL; write ", url_host,
        absl::StrContains(url_host, ':') ? "" : ":PORT", ", without ", rest.substr(0, scheme + 3)));
  }
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos || colon + 1 == rest.size()) {
    return Malformed(text, "the port is missing");
  }
  absl::string_view host = rest.substr(0, colon);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  } else if (absl::StrContains(host, ':')) {
    return Malformed(text, "an IPv6 address needs brackets");
  }
  if (host.empty()) return Malformed(text, "the host is missing");
  if (host.find_first_of(" \t/") != absl::string_view::npos) {
    return Malformed(text, "the host has a space or a slash");
  }
  const absl::string_view port = rest.substr(colon + 1);
  if (!absl::SimpleAtoi(port, &address.port) || address.port < 0 || address.port > 65535) {
    return Malformed(text, "the port is not a number from 0 to 65535");
  }
  address.host = std::string(host);
  return address;
}

absl::StatusOr<std::vector<Address>> ParseAddresses(absl::string_view text) {
  std::vector<Address> addresses;
  for (const absl::string_view one : absl::StrSplit(text, ',')) {
    HONE_ASSIGN_OR_RETURN(addresses.emplace_back(),
                          Address::Parse(absl::StripAsciiWhitespace(one)));
    if (addresses.back().IsUnix() != addresses.front().IsUnix()) {
      return Malformed(text, "a list has either Unix sockets or TCP addresses");
    }
  }
  return addresses;
}

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
