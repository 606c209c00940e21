#include "common/rpc/acceptor.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/spdlog.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/rpc/channel.h"
#include "common/rpc/listener.h"

namespace hone::rpc {
namespace {

// What an event of the thread's poll is about.
constexpr uint64_t kWakeTag = 0;
constexpr uint64_t kFirstListeningTag = 1;      // plus the index of the listening socket
constexpr uint64_t kFirstConnectionTag = 1024;  // plus the number of the connection

constexpr int kAcceptedAtOnce = 64;
// How long no connection is accepted after the process has run out of descriptors.
constexpr absl::Duration kDescriptorPause = absl::Seconds(1);

void SetPortOf(sockaddr_storage& address, int port) {
  if (address.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = htons(static_cast<uint16_t>(port));
  } else {
    reinterpret_cast<sockaddr_in&>(address).sin_port = htons(static_cast<uint16_t>(port));
  }
}

int PortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

}  // namespace

PeerNames PeerNamesOf(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = {};
  const int port = PortOf(address);
  if (address.ss_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(address).sin_addr, text, sizeof text);
    return {.host = text, .peer = absl::StrCat(text, ":", port)};
  }
  const auto& full = reinterpret_cast<const sockaddr_in6&>(address);
  in6_addr v6 = full.sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) {
    inet_ntop(AF_INET, &v6.s6_addr[12], text, sizeof text);
    return {.host = text, .peer = absl::StrCat(text, ":", port)};
  }
  inet_ntop(AF_INET6, &v6, text, sizeof text);
  const std::string scope = full.sin6_scope_id == 0 ? "" : absl::StrCat("%", full.sin6_scope_id);
  PeerNames names{.host = text, .peer = absl::StrCat("[", text, scope, "]:", port)};
  if (IN6_IS_ADDR_LOOPBACK(&v6)) return names;
  memset(&v6.s6_addr[8], 0, 8);
  inet_ntop(AF_INET6, &v6, text, sizeof text);
  names.host = absl::StrCat(text, scope, "/64");
  return names;
}

Acceptor::Acceptor(Connections* connections)
    : connections_(connections),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

Acceptor::~Acceptor() {
  Stop();
  close(poll_);
  close(wake_);
}

absl::StatusOr<std::unique_ptr<Acceptor>> Acceptor::Listen(const Address& address,
                                                           const ServerSecurity& security,
                                                           Connections* connections) {
  HONE_RETURN_IF_ERROR(CheckAllowed(address, security.tls(), security.insecure));
  HONE_RETURN_IF_ERROR(CheckPortFree(address));
  auto acceptor = std::unique_ptr<Acceptor>(new Acceptor(connections));
  if (acceptor->poll_ < 0 || acceptor->wake_ < 0) {
    return ErrnoStatus(errno, absl::StrCat("listening on ", address.ToText()));
  }
  if (address.host == "0.0.0.0" || address.host == "::") {
    // One socket for both kinds of addresses, unless the machine has no IPv6.
    sockaddr_in6 any{};
    any.sin6_family = AF_INET6;
    any.sin6_port = htons(static_cast<uint16_t>(address.port));
    any.sin6_addr = in6addr_any;
    if (acceptor->Bind(reinterpret_cast<const sockaddr&>(any), sizeof any) == 0) return acceptor;
  }
  HONE_ASSIGN_OR_RETURN(const AddressList list, Resolve(address));
  int error = EADDRNOTAVAIL;
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next) {
    sockaddr_storage one{};
    memcpy(&one, entry->ai_addr, entry->ai_addrlen);
    if (acceptor->port_ != 0) SetPortOf(one, acceptor->port_);  // all have the port of the first
    const int failed = acceptor->Bind(reinterpret_cast<const sockaddr&>(one), entry->ai_addrlen);
    if (failed != 0) error = failed;
  }
  if (acceptor->listening_.empty()) {
    return ErrnoStatus(error, absl::StrCat("cannot listen on ", address.ToText()));
  }
  return acceptor;
}

int Acceptor::Bind(const sockaddr& address, socklen_t size) {
  const int descriptor = socket(address.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (descriptor < 0) return errno;
  // Like gRPC's own listeners. All but the first are inherited by the connections.
  const int yes = 1, no = 0;
  const int user_timeout = static_cast<int>(absl::ToInt64Milliseconds(kKeepaliveTimeout));
  setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &user_timeout, sizeof user_timeout);
  if (address.sa_family == AF_INET6) {
    setsockopt(descriptor, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no);
  }
  if (bind(descriptor, &address, size) != 0 || listen(descriptor, SOMAXCONN) != 0) {
    const int error = errno;
    close(descriptor);
    return error;
  }
  listening_.push_back(descriptor);
  sockaddr_storage own{};
  socklen_t own_size = sizeof own;
  if (port_ == 0 && getsockname(descriptor, reinterpret_cast<sockaddr*>(&own), &own_size) == 0) {
    port_ = PortOf(own);
  }
  return 0;
}

void Acceptor::AddTo(grpc::ServerBuilder& builder, ServerCertificates& certificates) {
  server_ = builder.experimental().AddExternalConnectionAcceptor(
      grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
      certificates.Get().tls() ? certificates.MakeCredentials()
                               : grpc::InsecureServerCredentials());
}

void Acceptor::Start() {
  Watch(wake_, EPOLLIN, kWakeTag);
  for (size_t i = 0; i < listening_.size(); ++i) {
    Watch(listening_[i], EPOLLIN, kFirstListeningTag + i);
  }
  thread_ = std::thread([this] { Loop(); });
}

void Acceptor::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    if (write(wake_, &one, sizeof one) != sizeof one) spdlog::error("cannot wake a listener");
    thread_.join();
  }
  for (const int descriptor : listening_) close(descriptor);
  listening_.clear();
  while (!watched_.empty()) Forget(watched_.begin()->first);
}

bool Acceptor::Watch(int descriptor, uint32_t events, uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (epoll_ctl(poll_, EPOLL_CTL_ADD, descriptor, &event) == 0) return true;
  spdlog::error("cannot watch a socket: {}", strerror(errno));
  return false;
}

void Acceptor::Loop() {
  epoll_event events[64];
  while (true) {
    const int ready = epoll_wait(poll_, events, 64, /*timeout=*/-1);
    for (int i = 0; i < ready; ++i) {
      const uint64_t tag = events[i].data.u64;
      if (tag == kWakeTag) return;
      if (tag >= kFirstConnectionTag) {
        Forget(static_cast<int64_t>(tag - kFirstConnectionTag));
      } else {
        Accept(listening_[tag - kFirstListeningTag]);
      }
    }
  }
}

void Acceptor::Accept(int listening) {
  for (int i = 0; i < kAcceptedAtOnce; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int connection =
        accept4(listening, reinterpret_cast<sockaddr*>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection >= 0) {
      TakeIn(connection, peer, listening);
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    spdlog::error("cannot accept connections: {}; LimitNOFILE or ulimit -n may be too low",
                  strerror(errno));
    absl::SleepFor(kDescriptorPause);
    return;
  }
}

void Acceptor::TakeIn(int connection, const sockaddr_storage& peer, int listening) {
  const PeerNames names = PeerNamesOf(peer);
  // gRPC owns `connection` and does not say when it closes it.
  const int second = fcntl(connection, F_DUPFD_CLOEXEC, 0);
  std::optional<int64_t> number;
  if (second >= 0) {
    number = connections_->Add(names.host, names.peer, [second] { shutdown(second, SHUT_RDWR); });
  }
  if (!number.has_value()) {
    if (second >= 0) close(second);
    close(connection);
    return;
  }
  watched_[*number] = second;
  if (!Watch(second, EPOLLRDHUP, kFirstConnectionTag + static_cast<uint64_t>(*number))) {
    Forget(*number);
    close(connection);
    return;
  }
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.listener_fd = listening;
  parameters.fd = connection;
  server_->HandleNewConnection(&parameters);
}

void Acceptor::Forget(int64_t connection) {
  const auto found = watched_.find(connection);
  if (found == watched_.end()) return;
  connections_->Remove(connection);  // first, because it may use the descriptor until then
  // Otherwise the poll would go on with it while gRPC has the connection.
  epoll_ctl(poll_, EPOLL_CTL_DEL, found->second, nullptr);
  close(found->second);
  watched_.erase(found);
}

}  // namespace hone::rpc
