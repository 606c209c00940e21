#include "tests/server/store/postgres_server.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "tests/integration/process.h"

namespace hone::store {
namespace {

constexpr absl::Duration kStartLimit = absl::Seconds(60);
constexpr absl::Duration kEndLimit = absl::Seconds(10);

const passwd* User() {
  const passwd* user = getpwnam("postgres");
  return user != nullptr ? user : getpwnam("nobody");
}

// Gives a file to the user of the server.
absl::Status GiveToUser(const std::string& path) {
  if (geteuid() != 0) return absl::OkStatus();
  if (User() != nullptr && chown(path.c_str(), User()->pw_uid, User()->pw_gid) == 0) {
    return absl::OkStatus();
  }
  return absl::InternalError("no user to run PostgreSQL as");
}

// Starts a program as a user that PostgreSQL accepts, with its output redirected to a file.
pid_t Run(const std::vector<std::string>& words, const std::string& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const passwd* const user = geteuid() == 0 ? User() : nullptr;
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  if (user != nullptr &&
      (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) {
    _exit(126);
  }
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  if (getppid() != parent) _exit(125);
  if (freopen(log.c_str(), "a", stdout) == nullptr ||
      freopen(log.c_str(), "a", stderr) == nullptr) {
    _exit(124);
  }
  if (chdir("/") == 0) execv(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

std::string PostgresPrograms() {
  for (const char* const folder : {"/usr/lib/postgresql/15/bin", "/usr/lib/postgresql/16/bin",
                                   "/usr/lib/postgresql/17/bin", "/usr/local/pgsql/bin"}) {
    std::error_code error;
    if (std::filesystem::exists(absl::StrCat(folder, "/initdb"), error)) return folder;
  }
  return "";
}

absl::StatusOr<PostgresServer*> PostgresServer::Get() {
  static absl::Status problem;
  static const std::unique_ptr<PostgresServer> server = [] {
    std::unique_ptr<PostgresServer> made(new PostgresServer);
    problem = made->Start();
    return made;
  }();
  if (!problem.ok()) return problem;
  return server.get();
}

absl::StatusOr<std::unique_ptr<PostgresServer>> PostgresServer::Make(int64_t disk_bytes) {
  std::unique_ptr<PostgresServer> server(new PostgresServer);
  server->mounted_ = server->MountDisk(disk_bytes);
  HONE_RETURN_IF_ERROR(server->Start());
  return server;
}

absl::Status PostgresServer::MountDisk(int64_t bytes) {
  if (geteuid() != 0) return absl::FailedPreconditionError("only root may mount a file system");
  HONE_RETURN_IF_ERROR(MakeDirectories(disk()));
  // The mount is visible to this thread and its child processes alone, and ends with them.
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return absl::FailedPreconditionError(
        std::string(ErrnoStatus(errno, "make a mount namespace").message()));
  }
  const std::string options = absl::StrCat("mode=0700,size=", bytes);
  if (mount("tmpfs", disk().c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0) {
    return absl::FailedPreconditionError(
        std::string(ErrnoStatus(errno, "mount a tmpfs at " + disk()).message()));
  }
  return absl::OkStatus();
}

absl::Status PostgresServer::Start() {
  const std::string programs = PostgresPrograms();
  if (programs.empty()) return absl::NotFoundError("PostgreSQL is not installed");
  HONE_RETURN_IF_ERROR(MakeDirectories(disk()));
  HONE_RETURN_IF_ERROR(GiveToUser(folder_.path()));
  HONE_RETURN_IF_ERROR(GiveToUser(disk()));
  std::vector<std::string> words = {absl::StrCat(programs, "/initdb"),
                                    "-D",
                                    data(),
                                    "-E",
                                    "UTF8",
                                    "--locale=C",
                                    "-A",
                                    "trust",
                                    "-U",
                                    "hone",
                                    "--no-sync"};
  // Small files of the log, so that a full disk also has no room for the next one.
  if (mounted_.ok()) words.push_back("--wal-segsize=4");
  int status = 0;
  const pid_t made = Run(words, folder_ / "log");
  if (waitpid(made, &status, 0) < 0 || status != 0) {
    return absl::InternalError(absl::StrCat("initdb failed: ", Log()));
  }
  Launch();
  const absl::Time deadline = absl::Now() + kStartLimit;
  while (!Answers()) {
    if (!Running() || absl::Now() > deadline) {
      return absl::InternalError(absl::StrCat("postgres did not start: ", Log()));
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  return absl::OkStatus();
}

PostgresServer::~PostgresServer() {
  if (Running()) {
    kill(pid_, SIGQUIT);
    waitpid(pid_, nullptr, 0);
  }
  if (mounted_.ok()) umount2(disk().c_str(), MNT_DETACH);
}

void PostgresServer::Launch() {
  std::vector<std::string> words = {absl::StrCat(PostgresPrograms(), "/postgres"),
                                    "-D",
                                    data(),
                                    "-k",
                                    folder_.path(),
                                    "-p",
                                    "5432"};
  std::vector<std::string> settings = {"listen_addresses=", "fsync=off", "shared_buffers=32MB"};
  if (mounted_.ok()) settings.insert(settings.end(), {"min_wal_size=8MB", "max_wal_size=32MB"});
  for (const std::string& setting : settings) words.insert(words.end(), {"-c", setting});
  pid_ = Run(words, folder_ / "log");
}

bool PostgresServer::Running() {
  if (pid_ > 0 && waitpid(pid_, nullptr, WNOHANG) == pid_) pid_ = -1;
  return pid_ > 0;
}

bool PostgresServer::Answers() const {
  return integration::RunProgram({absl::StrCat(PostgresPrograms(), "/pg_isready"), "-q", "-U",
                                  "hone", "-h", folder_.path()})
             .code == 0;
}

void PostgresServer::Kill() {
  if (!Running()) return;
  // Its children would otherwise go on with what they are doing.
  std::vector<pid_t> all = integration::Descendants(pid_);
  all.insert(all.begin(), pid_);
  for (const pid_t process : all) kill(process, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void PostgresServer::Restart() {
  if (Running()) {
    kill(pid_, SIGINT);  // ends the sessions
    if (!integration::Eventually([this] { return !Running(); }, kEndLimit)) Kill();
  }
  Launch();
}

void PostgresServer::Demote() {
  const std::string signal = data() + "/standby.signal";
  if (WriteFileAtomically(signal, "").ok() && GiveToUser(signal).ok()) Restart();
}

void PostgresServer::Promote() {
  unlink((data() + "/standby.signal").c_str());
  Restart();
}

absl::Status PostgresServer::FillDisk() {
  HONE_RETURN_IF_ERROR(mounted_);
  const int fd = open((disk() + "/filler").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return ErrnoStatus(errno, "fill " + disk());
  // Smaller pieces fill what is left.
  for (size_t size = size_t{1} << 20; size >= 4096; size /= 16) {
    const std::string zeros(size, '\0');
    while (write(fd, zeros.data(), zeros.size()) > 0) {
    }
  }
  close(fd);
  return absl::OkStatus();
}

void PostgresServer::FreeDisk() { unlink((disk() + "/filler").c_str()); }

std::string PostgresServer::Log() const { return ReadFile(folder_ / "log").value_or(""); }

std::string PostgresServer::Uri(const std::string& database) const {
  return absl::StrCat("postgresql://hone@/", database, "?host=", folder_.path());
}

std::vector<std::string> PostgresServer::Psql(const std::string& database) const {
  return {absl::StrCat(PostgresPrograms(), "/psql"),
          "-X",
          "-q",
          "-v",
          "ON_ERROR_STOP=1",
          "-h",
          folder_.path(),
          "-U",
          "hone",
          "-d",
          database};
}

absl::Status PostgresServer::Administer(const std::string& sql) {
  const integration::Result result =
      integration::RunProgram(integration::With(Psql("postgres"), {"-c", sql}));
  if (result.code == 0) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(sql, ": ", result.errors));
}

absl::Status PostgresServer::Check(const std::string& database) const {
  const std::string program = absl::StrCat(PostgresPrograms(), "/pg_amcheck");
  std::error_code error;
  if (!std::filesystem::exists(program, error)) {
    return absl::NotFoundError("pg_amcheck is not installed");
  }
  const integration::Result result = integration::RunProgram(
      {program, "--install-missing", "-h", folder_.path(), "-U", "hone", "-d", database});
  if (result.code == 0) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(result.output, result.errors));
}

absl::StatusOr<std::string> PostgresServer::DatabaseOf(const std::string& place) {
  const std::string name = std::filesystem::path(place).filename().string();
  if (databases_.insert(name).second) {
    HONE_RETURN_IF_ERROR(Administer(absl::StrCat("CREATE DATABASE \"", name, "\"")));
  }
  return Uri(name);
}

}  // namespace hone::store
