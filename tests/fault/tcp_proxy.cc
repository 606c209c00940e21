#include "tests/fault/tcp_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"

namespace hone::fault {
namespace {

constexpr size_t kReadSize = 64 << 10;
constexpr size_t kMostHeld = 256;  // chunks; beyond it reading stops, as with a full socket
constexpr int kPollMs = 1000;

int ConnectTo(const std::string& unix_path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, unix_path.c_str(), sizeof(address.sun_path) - 1);
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd);
    return -1;
  }
  if (fd >= 0) fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TcpProxy>> TcpProxy::Start(const std::string& unix_path) {
  auto proxy = std::unique_ptr<TcpProxy>(new TcpProxy);
  proxy->unix_path_ = unix_path;
  proxy->listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (proxy->listener_ < 0 || bind(proxy->listener_, any, sizeof(address)) != 0 ||
      listen(proxy->listener_, 64) != 0 || getsockname(proxy->listener_, any, &size) != 0 ||
      pipe2(proxy->wake_, O_CLOEXEC | O_NONBLOCK) != 0) {
    return ErrnoStatus(errno, "open a port");
  }
  proxy->port_ = ntohs(address.sin_port);
  proxy->thread_ = std::thread([raw = proxy.get()] { raw->Loop(); });
  return proxy;
}

TcpProxy::~TcpProxy() {
  if (thread_.joinable()) {
    {
      absl::MutexLock lock(&mutex_);
      stop_ = true;
    }
    Wake();
    thread_.join();
  }
  for (Link& link : links_) Close(link);
  for (const int fd : {listener_, wake_[0], wake_[1]}) {
    if (fd >= 0) close(fd);
  }
}

std::string TcpProxy::address() const { return absl::StrCat("127.0.0.1:", port_); }

void TcpProxy::SetWeather(const Weather& weather) {
  {
    absl::MutexLock lock(&mutex_);
    cut_ = cut_ || (weather_.swallow_replies && !weather.swallow_replies);
    weather_ = weather;
  }
  Wake();
}

void TcpProxy::Cut() {
  {
    absl::MutexLock lock(&mutex_);
    cut_ = true;
  }
  Wake();
}

void TcpProxy::Wake() {
  const char byte = 0;
  [[maybe_unused]] const ssize_t written = write(wake_[1], &byte, 1);
}

void TcpProxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (client < 0) return;
  const int one = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  const int server = ConnectTo(unix_path_);
  if (server < 0) {
    close(client);
    return;
  }
  Link& link = links_.emplace_back();
  link.up = {.from = client, .to = server};
  link.down = {.from = server, .to = client};
}

void TcpProxy::Close(Link& link) {
  // Closes with a reset.
  const linger hard = {.l_onoff = 1, .l_linger = 0};
  setsockopt(link.up.from, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
  close(link.up.from);
  close(link.up.to);
}

void TcpProxy::Move(Way& way, bool readable, bool swallow, Link& link) {
  if (readable && !way.ended) {
    std::string bytes(kReadSize, '\0');
    const ssize_t n = read(way.from, bytes.data(), bytes.size());
    if (n > 0) bytes_ += n;
    if (n > 0 && !swallow) {
      absl::Duration delay;
      {
        absl::MutexLock lock(&mutex_);
        delay = weather_.delay;
      }
      bytes.resize(static_cast<size_t>(n));
      absl::Time due = absl::Now() + delay;
      if (!way.held.empty()) due = std::max(due, way.held.back().due);  // bytes keep their order
      way.held.push_back({due, std::move(bytes)});
    } else if (n == 0) {
      way.ended = true;
    } else if (n < 0 && errno != EAGAIN && errno != EINTR) {
      link.broken = true;
    }
  }
  while (!way.held.empty() && way.held.front().due <= absl::Now()) {
    std::string& bytes = way.held.front().bytes;
    const ssize_t n = send(way.to, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n < 0) {
      link.broken = link.broken || (errno != EAGAIN && errno != EINTR);
      return;
    }
    bytes.erase(0, static_cast<size_t>(n));
    if (!bytes.empty()) return;
    way.held.pop_front();
  }
  if (way.ended && way.held.empty()) link.broken = true;
}

void TcpProxy::Loop() {
  for (;;) {
    Weather weather;
    {
      absl::MutexLock lock(&mutex_);
      if (stop_) return;
      weather = weather_;
      if (cut_) {
        for (Link& link : links_) link.broken = true;
      }
      cut_ = false;
    }
    for (auto it = links_.begin(); it != links_.end();) {
      if (it->broken) Close(*it);
      it = it->broken ? links_.erase(it) : std::next(it);
    }
    std::vector<pollfd> wanted = {{.fd = wake_[0], .events = POLLIN}};
    if (!weather.black_hole) wanted.push_back({.fd = listener_, .events = POLLIN});
    const size_t first = wanted.size();
    absl::Time next = absl::Now() + absl::Milliseconds(kPollMs);
    if (!weather.black_hole) {
      for (Link& link : links_) {
        short up = 0, down = 0;
        for (auto [way, reads, writes] :
             {std::tuple{&link.up, &up, &down}, std::tuple{&link.down, &down, &up}}) {
          if (!way->ended && way->held.size() < kMostHeld) *reads |= POLLIN;
          if (way->held.empty()) continue;
          if (way->held.front().due <= absl::Now()) {
            *writes |= POLLOUT;
          } else {
            next = std::min(next, way->held.front().due);
          }
        }
        // A closed connection must not wake the poll if no event is wanted.
        wanted.push_back({.fd = up != 0 ? link.up.from : -1, .events = up});
        wanted.push_back({.fd = down != 0 ? link.up.to : -1, .events = down});
      }
    }
    const int64_t wait_ms = absl::ToInt64Milliseconds(next - absl::Now()) + 1;
    poll(wanted.data(), wanted.size(), static_cast<int>(std::max<int64_t>(0, wait_ms)));
    if (wanted[0].revents != 0) {
      char bytes[64];
      while (read(wake_[0], bytes, sizeof(bytes)) > 0) {
      }
      continue;  // the faults may have changed
    }
    if (weather.black_hole) continue;
    size_t at = first;
    for (Link& link : links_) {
      const short client = wanted[at].revents;
      const short server = wanted[at + 1].revents;
      at += 2;
      constexpr short kReadable = POLLIN | POLLHUP | POLLERR;
      const bool up_reads = (wanted[at - 2].events & POLLIN) != 0 && (client & kReadable) != 0;
      const bool down_reads = (wanted[at - 1].events & POLLIN) != 0 && (server & kReadable) != 0;
      Move(link.up, up_reads, false, link);
      Move(link.down, down_reads, weather.swallow_replies, link);
    }
    if (wanted[1].revents != 0) Accept();
  }
}

}  // namespace hone::fault
