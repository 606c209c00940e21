#include "client/connection/private_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/connection/keeper.h"
#include "common/base/file.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"

namespace hone::client {
namespace {

constexpr absl::Duration kRetryInterval = absl::Milliseconds(5);

absl::Status CheckProgram(const std::string& path) {
  if (access(path.c_str(), X_OK) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   " is missing; keep all of Hone's programs in one folder, as the build does, or "
                   "name a running server with --server"));
}

sockaddr_un SocketAddress(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  memcpy(address.sun_path, path.data(), std::min(path.size(), sizeof(address.sun_path) - 1));
  return address;
}

absl::StatusOr<int> Listen(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return ErrnoStatus(errno, "cannot make a Unix socket");
  unlink(path.c_str());
  const sockaddr_un address = SocketAddress(path);
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      listen(fd, 64) != 0) {
    const int error = errno;
    close(fd);
    return ErrnoStatus(error, absl::StrCat("cannot listen on the Unix socket ", path));
  }
  return fd;
}

}  // namespace

PrivateServer::PrivateServer(Options options, PrivatePaths paths)
    : options_(std::move(options)),
      paths_(std::move(paths)),
      address_(absl::StrCat("unix:", paths_.server_socket)) {}

PrivateServer::~PrivateServer() {
  if (fd_ >= 0) close(fd_);
}

absl::StatusOr<std::unique_ptr<PrivateServer>> PrivateServer::StartOrJoin(const Options& given) {
  Options options = given;
  if (options.program_dir.empty()) options.program_dir = ProgramDir();
  if (options.data_dir.empty()) {
    HONE_ASSIGN_OR_RETURN(options.data_dir, DefaultDataDir());
  }
  std::vector<absl::string_view> programs = {"hone-server"};
  // Check the programs that the worker starts, too: it would report a missing one only later, in
  // its log.
  if (options.with_worker) {
    programs.insert(programs.end(), {"hone-worker", "hone-builder", "hone-runner"});
  }
  for (const absl::string_view program : programs) {
    HONE_RETURN_IF_ERROR(CheckProgram(absl::StrCat(options.program_dir, "/", program)));
  }
  HONE_ASSIGN_OR_RETURN(PrivatePaths paths, MakePrivatePaths(options.data_dir));

  auto server =
      std::unique_ptr<PrivateServer>(new PrivateServer(std::move(options), std::move(paths)));
  const absl::Time deadline = absl::Now() + server->options_.timeout;
  while (true) {
    const absl::Status attached = server->TryAttach();
    if (attached.ok()) return server;
    if (!absl::IsUnavailable(attached)) return attached;
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the private server of ", server->paths_.data_dir, " does not answer and does not exit; ",
          server->paths_.lock, " has its process id"));
    }
    absl::SleepFor(kRetryInterval);
  }
}

absl::Status PrivateServer::StoppedError() const {
  return absl::FailedPreconditionError(absl::StrCat("the private server has stopped; its logs are ",
                                                    paths_.server_log, " and ",
                                                    paths_.WorkerLog(options_.device)));
}

absl::Status PrivateServer::TryAttach() {
  // The process that locks the file becomes the keeper.
  int lock_fd = open(paths_.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_fd < 0) {
    return ErrnoStatus(
        errno,
        absl::StrCat(
            "cannot write ", paths_.lock,
            "; the data folder must be writable: free some space there, or set XDG_DATA_HOME "
            "to another folder"));
  }
  auto close_lock = absl::MakeCleanup([lock_fd] { close(lock_fd); });
  if (flock(lock_fd, LOCK_EX | LOCK_NB) == 0) {
    if (options_.join_only) return StoppedError();
    // Listen before the keeper runs, so that clients can connect immediately.
    HONE_ASSIGN_OR_RETURN(const int listen_fd, Listen(paths_.keeper_socket));
    auto close_listen = absl::MakeCleanup([listen_fd] { close(listen_fd); });
    const pid_t middle = fork();
    if (middle < 0) return ErrnoStatus(errno, "cannot start the private server");
    if (middle == 0) {
      // Fork twice, so that the keeper is not our child and leaves no zombie if we keep running.
      if (fork() == 0) RunKeeper({paths_, options_.program_dir, lock_fd, listen_fd});
      _exit(0);
    }
    waitpid(middle, nullptr, 0);
  } else if (errno != EWOULDBLOCK) {
    return ErrnoStatus(errno, absl::StrCat("cannot lock ", paths_.lock));
  }

  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) return ErrnoStatus(errno, "cannot make a Unix socket");
  const sockaddr_un address = SocketAddress(paths_.keeper_socket);
  const std::string request =
      options_.with_worker ? absl::StrCat(kAttachWorker, options_.device) : kAttach;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    close(fd);
    return absl::UnavailableError("the keeper is starting or exiting");
  }
  fd_ = fd;
  return absl::OkStatus();
}

absl::StatusOr<std::string> PrivateServer::Receive(absl::Time deadline) {
  while (true) {
    pollfd waiting = {fd_, POLLIN, 0};
    const int64_t left_ms = std::max<int64_t>(0, absl::ToInt64Milliseconds(deadline - absl::Now()));
    const int events = poll(&waiting, 1, static_cast<int>(std::min<int64_t>(left_ms, 60'000)));
    if (events < 0 && errno != EINTR)
      return ErrnoStatus(errno, "cannot wait for the private server");
    if (events > 0) break;
    if (absl::Now() >= deadline) return absl::DeadlineExceededError("no answer");
  }
  char packet[kMaxKeeperPacket];
  const ssize_t size = recv(fd_, packet, sizeof(packet), 0);
  if (size <= 0) return absl::UnavailableError("the keeper has exited");
  return std::string(packet, size);
}

absl::Status PrivateServer::WaitUntilReady() {
  const absl::Time deadline = absl::Now() + options_.timeout;
  while (!ready_) {
    absl::StatusOr<std::string> answer = Receive(deadline);
    if (absl::IsUnavailable(answer.status())) {
      // The keeper was exiting because its last client had gone. Start a new one.
      close(fd_);
      fd_ = -1;
      absl::Status attached = absl::UnavailableError("");
      while (absl::IsUnavailable(attached) && absl::Now() < deadline) {
        attached = TryAttach();
        if (absl::IsUnavailable(attached)) absl::SleepFor(kRetryInterval);
      }
      if (absl::IsUnavailable(attached)) {
        return absl::DeadlineExceededError("the previous private server does not exit");
      }
      HONE_RETURN_IF_ERROR(attached);
      continue;
    }
    if (absl::IsDeadlineExceeded(answer.status())) {
      return absl::DeadlineExceededError(
          absl::StrCat("the private server is not ready; its log is ", paths_.server_log));
    }
    HONE_RETURN_IF_ERROR(answer.status());
    absl::string_view text = *answer;
    if (text == kReady) {
      ready_ = true;
    } else if (absl::ConsumePrefix(&text, kFailed)) {
      return absl::FailedPreconditionError(text);
    }
  }
  return absl::OkStatus();
}

absl::Status PrivateServer::Check() {
  if (!health_.ok()) return health_;
  const absl::StatusOr<std::string> packet = Receive(absl::InfinitePast());
  if (absl::IsDeadlineExceeded(packet.status())) return absl::OkStatus();
  if (!packet.ok()) {
    health_ = StoppedError();
    return health_;
  }
  absl::string_view text = *packet;
  if (absl::ConsumePrefix(&text, kFailed) || absl::ConsumePrefix(&text, kWorkerFailed)) {
    health_ = absl::FailedPreconditionError(text);
  }
  return health_;
}

}  // namespace hone::client
