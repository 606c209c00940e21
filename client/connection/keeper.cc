#include "client/connection/keeper.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"

namespace hone::client {
namespace {

constexpr absl::Duration kFirstClientTimeout = absl::Seconds(10);
constexpr absl::Duration kServerStartTimeout = absl::Seconds(30);
constexpr absl::Duration kReadyPollInterval = absl::Milliseconds(2);
constexpr absl::Duration kStopTimeout = absl::Seconds(5);
// A worker that ran this long had started properly: earlier failures are no longer counted.
constexpr absl::Duration kWorkerSettled = absl::Seconds(10);
constexpr int kWorkerAttempts = 4;
constexpr uint64_t kFullDiskBytes = 64 << 10;

struct Attached {
  int fd = -1;
  bool asked = false;
  bool answered = false;
  std::string device;  // the device that it wants to measure on; "": none
};

struct Child {
  pid_t pid = 0;
  absl::Time started = absl::InfinitePast();
};

// The worker of one device. It exists once a client has asked for it, even while no process runs.
struct DeviceWorker {
  Child child;
  int attempts = 0;                         // consecutive failures
  absl::Time due = absl::InfiniteFuture();  // when to start it (again)
};

// The end of a log, for the message to a client.
std::string Tail(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) return "";
  absl::string_view tail = absl::StripAsciiWhitespace(*text);
  constexpr size_t kMaxTail = 1500;
  if (tail.size() > kMaxTail) tail.remove_prefix(tail.size() - kMaxTail);
  return std::string(tail);
}

// The end of the log of a program that has exited, or the probable cause if the log is empty.
std::string LastWords(const std::string& log) {
  const std::string tail = Tail(log);
  if (!tail.empty()) return tail;
  struct statvfs space = {};
  if (statvfs(log.c_str(), &space) == 0 && space.f_bavail * space.f_frsize < kFullDiskBytes) {
    return absl::StrCat("the disk of ", log,
                        " is full; free some space, or set XDG_DATA_HOME to another disk");
  }
  return absl::StrCat("its log ", log, " is empty");
}

// How a program ended, and why. The log of a program that was killed does not say why.
std::string HowItEnded(int status, const std::string& log) {
  if (!WIFSIGNALED(status)) {
    return absl::StrCat("exited with code ", WEXITSTATUS(status), ": ", LastWords(log));
  }
  const int signal = WTERMSIG(status);
  return absl::StrCat(
      "was killed by signal ", signal,
      signal == SIGKILL ? ", by a user or because the machine ran out of memory" : "",
      "; its log is ", log);
}

class Keeper {
 public:
  explicit Keeper(const KeeperOptions& options)
      : paths_(options.paths), program_dir_(options.program_dir) {
    listen_fd_ = options.listen_fd;
    lock_fd_ = options.lock_fd;
  }

  [[noreturn]] void Run() {
    Detach();
    WriteLockFile();
    StartServer();
    const absl::Time started = absl::Now();
    while (true) {
      const bool waits_for_first = !had_client_ && absl::Now() < started + kFirstClientTimeout;
      if (clients_.empty() && !waits_for_first) break;
      if (ended_by_signal_) break;
      WaitForEvents();
      CheckServerStart();
      RestartWorkersIfDue();
      AnswerClients();
    }
    Stop();
  }

 private:
  // Starts a session without a terminal: Ctrl-C in the client's terminal does not reach it.
  // Closes inherited descriptors: otherwise a reader of the client's output would wait for the
  // keeper to exit.
  void Detach() {
    setsid();
    prctl(PR_SET_NAME, "hone-keeper");
    // Move the two descriptors away from the standard ones and close all others.
    lock_fd_ = fcntl(lock_fd_, F_DUPFD_CLOEXEC, 10);
    listen_fd_ = fcntl(listen_fd_, F_DUPFD_CLOEXEC, 10);
    for (int fd = 0; fd < 1024; ++fd) {
      if (fd != lock_fd_ && fd != listen_fd_) close(fd);
    }
    if (open("/dev/null", O_RDWR) == 0) {
      dup2(0, 1);
      dup2(0, 2);
    }
    if (chdir(paths_.data_dir.c_str()) != 0) Fail(absl::StrCat("cannot enter ", paths_.data_dir));
    signal(SIGPIPE, SIG_IGN);
    // It looks like the command that started it, so "pkill -INT" reaches both. The command then
    // asks for the end of its job, which needs the server.
    signal(SIGINT, SIG_IGN);
    sigset_t signals;
    sigemptyset(&signals);
    for (int s : {SIGCHLD, SIGTERM, SIGHUP}) sigaddset(&signals, s);
    sigprocmask(SIG_SETMASK, &signals, nullptr);
    signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  }

  // Writes the holder of the lock, for people and tools. Clients depend only on the lock itself.
  void WriteLockFile() {
    const std::string text =
        absl::StrCat("keeper ", getpid(), "\nserver unix:", paths_.server_socket, "\n");
    if (ftruncate(lock_fd_, 0) != 0 || pwrite(lock_fd_, text.data(), text.size(), 0) < 0) return;
  }

  Child Start(const std::vector<std::string>& command, const std::string& log) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    const pid_t keeper = getpid();
    const pid_t pid = fork();
    if (pid != 0) return {pid, absl::Now()};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != keeper) _exit(127);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (const int s : {SIGPIPE, SIGINT}) signal(s, SIG_DFL);
    const int log_fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (log_fd >= 0) {
      dup2(log_fd, 1);
      dup2(log_fd, 2);
    }
    execv(argv[0], argv.data());
    const std::string why = absl::StrCat("cannot start ", command[0], ": ", strerror(errno), "\n");
    if (write(2, why.data(), why.size()) < 0) _exit(126);
    _exit(127);
  }

  void StartServer() {
    unlink(paths_.ready_file.c_str());
    unlink(paths_.server_socket.c_str());
    server_ = Start({absl::StrCat(program_dir_, "/hone-server"), "--private", "--listen",
                     absl::StrCat("unix:", paths_.server_socket), "--store", paths_.store,
                     "--ready-file", paths_.ready_file},
                    paths_.server_log);
    if (server_.pid < 0) Fail("cannot start hone-server: no more processes");
  }

  void StartWorker(const std::string& device, DeviceWorker& worker) {
    worker.child = Start({absl::StrCat(program_dir_, "/hone-worker"), "--server",
                          absl::StrCat("unix:", paths_.server_socket), "--device", device,
                          "--state-dir", paths_.WorkerState(device), "--exit-with-parent",
                          // It only builds and runs what this user asks for.
                          "--allow-unguarded-files"},
                         paths_.WorkerLog(device));
  }

  bool IsWanted(const std::string& device) const {
    return std::any_of(clients_.begin(), clients_.end(),
                       [&](const Attached& c) { return c.device == device; });
  }

  // Records that the server is gone, and tells every client, even those that have received kReady.
  void Fail(const std::string& why) {
    if (!failure_.empty()) return;
    failure_ = why;
    for (Attached& client : clients_) client.answered = false;
  }

  int PollTimeoutMs() const {
    absl::Time wake = absl::InfiniteFuture();
    if (!ready_ && failure_.empty()) wake = absl::Now() + kReadyPollInterval;
    if (!had_client_) wake = std::min(wake, absl::Now() + kFirstClientTimeout);
    for (const auto& [device, worker] : workers_) wake = std::min(wake, worker.due);
    if (wake == absl::InfiniteFuture()) return -1;
    return static_cast<int>(std::max<int64_t>(
        0, absl::ToInt64Milliseconds(wake - absl::Now() + absl::Microseconds(999))));
  }

  void WaitForEvents() {
    std::vector<pollfd> fds = {{signal_fd_, POLLIN, 0}, {listen_fd_, POLLIN, 0}};
    for (const Attached& client : clients_) fds.push_back({client.fd, POLLIN, 0});
    if (poll(fds.data(), fds.size(), PollTimeoutMs()) <= 0) return;
    for (size_t i = 2; i < fds.size(); ++i) {
      if (fds[i].revents != 0) Hear(clients_[i - 2]);
    }
    std::erase_if(clients_, [](const Attached& client) { return client.fd < 0; });
    if (fds[0].revents != 0) HearSignals();
    if (fds[1].revents != 0) Accept();
  }

  void Accept() {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    clients_.push_back({fd});
    had_client_ = true;
  }

  void Hear(Attached& client) {
    char packet[kMaxKeeperPacket];
    const ssize_t size = recv(client.fd, packet, sizeof(packet), 0);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    absl::string_view said(packet, std::max<ssize_t>(size, 0));
    if (said == kAttach) {
      client.asked = true;
      return;
    }
    if (absl::ConsumePrefix(&said, kAttachWorker) && !said.empty()) {
      client.asked = true;
      client.device = std::string(said);
      DeviceWorker& worker = workers_[client.device];
      worker.attempts = 0;  // try again for each new client
      if (worker.child.pid == 0) worker.due = absl::InfinitePast();
      return;
    }
    close(client.fd);
    client.fd = -1;
  }

  void HearSignals() {
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
      if (info.ssi_signo != SIGCHLD) ended_by_signal_ = true;
    }
    int status = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (pid == server_.pid) {
        server_ = {};
        Fail(absl::StrCat("the private hone-server ", HowItEnded(status, paths_.server_log)));
        continue;
      }
      for (auto& [device, worker] : workers_) {
        if (pid == worker.child.pid) WorkerEnded(device, worker, status);
      }
    }
  }

  void WorkerEnded(const std::string& device, DeviceWorker& worker, int status) {
    if (absl::Now() - worker.child.started > kWorkerSettled) worker.attempts = 0;
    worker.child = {};
    if (++worker.attempts < kWorkerAttempts) {
      worker.due = absl::Now() + (worker.attempts - 1) * absl::Milliseconds(500);
      return;
    }
    const std::string why = absl::StrCat(kWorkerFailed, "the local hone-worker ",
                                         HowItEnded(status, paths_.WorkerLog(device)));
    for (const Attached& client : clients_) {
      if (client.device == device)
        send(client.fd, why.data(), std::min<size_t>(why.size(), kMaxKeeperPacket), MSG_NOSIGNAL);
    }
  }

  void RestartWorkersIfDue() {
    if (!ready_ || !failure_.empty()) return;
    for (auto& [device, worker] : workers_) {
      if (absl::Now() < worker.due) continue;
      worker.due = absl::InfiniteFuture();
      if (worker.child.pid == 0 && IsWanted(device)) StartWorker(device, worker);
    }
  }

  void CheckServerStart() {
    if (ready_ || !failure_.empty()) return;
    if (access(paths_.ready_file.c_str(), F_OK) == 0) {
      ready_ = true;
    } else if (absl::Now() - server_.started > kServerStartTimeout) {
      Fail(absl::StrCat("the private hone-server was not ready after ",
                        absl::FormatDuration(kServerStartTimeout), ": ",
                        LastWords(paths_.server_log)));
    }
  }

  void AnswerClients() {
    if (!ready_ && failure_.empty()) return;
    const std::string answer = failure_.empty() ? kReady : absl::StrCat(kFailed, failure_);
    for (Attached& client : clients_) {
      if (!client.asked || client.answered) continue;
      client.answered = true;
      send(client.fd, answer.data(), std::min<size_t>(answer.size(), kMaxKeeperPacket),
           MSG_NOSIGNAL);
    }
  }

  // Terminates a child, with SIGKILL if it does not exit in time.
  void End(Child& child) {
    if (child.pid <= 0) return;
    kill(child.pid, SIGTERM);
    const absl::Time deadline = absl::Now() + kStopTimeout;
    pollfd signals = {signal_fd_, POLLIN, 0};
    while (waitpid(child.pid, nullptr, WNOHANG) == 0) {
      if (absl::Now() > deadline) {
        kill(child.pid, SIGKILL);
        waitpid(child.pid, nullptr, 0);
        break;
      }
      if (poll(&signals, 1, 50) > 0) {
        signalfd_siginfo info;
        while (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
        }
      }
    }
    child = {};
  }

  [[noreturn]] void Stop() {
    unlink(paths_.keeper_socket.c_str());
    close(listen_fd_);
    // Stop the workers first: the server can then still store their last results.
    for (auto& [device, worker] : workers_) End(worker.child);
    End(server_);
    unlink(paths_.server_socket.c_str());
    unlink(paths_.ready_file.c_str());
    if (ftruncate(lock_fd_, 0) != 0) _exit(1);
    // This also kills processes that the worker may have left in our process group. The lock is
    // released when we exit.
    kill(0, SIGKILL);
    _exit(0);
  }

  const PrivatePaths paths_;
  const std::string program_dir_;
  int listen_fd_ = -1;
  int lock_fd_ = -1;
  int signal_fd_ = -1;
  std::vector<Attached> clients_;
  bool had_client_ = false;
  bool ended_by_signal_ = false;
  bool ready_ = false;
  std::string failure_;  // why there is no server; "": it is starting or running
  Child server_;
  std::map<std::string, DeviceWorker> workers_;  // by device
};

}  // namespace

void RunKeeper(const KeeperOptions& options) { Keeper(options).Run(); }

}  // namespace hone::client
