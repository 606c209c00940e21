#include "tests/server/store/postgres_server.h"

#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"
#include "server/store/postgres/connection.h"

namespace hone::store {
namespace {

const passwd* User() {
  const passwd* user = getpwnam("postgres");
  return user != nullptr ? user : getpwnam("nobody");
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

absl::Status PostgresServer::Start() {
  const std::string programs = PostgresPrograms();
  if (programs.empty()) return absl::NotFoundError("PostgreSQL is not installed");
  if (geteuid() == 0 &&
      (User() == nullptr || chown(folder_.path().c_str(), User()->pw_uid, User()->pw_gid) != 0)) {
    return absl::InternalError("no user to run PostgreSQL as");
  }
  const std::string data = folder_ / "data";
  const std::string log = folder_ / "log";
  int status = 0;
  const pid_t made = Run({absl::StrCat(programs, "/initdb"), "-D", data, "-E", "UTF8", "--locale=C",
                          "-A", "trust", "-U", "hone", "--no-sync"},
                         log);
  if (waitpid(made, &status, 0) < 0 || status != 0) {
    return absl::InternalError(absl::StrCat("initdb failed; see ", log));
  }
  pid_ = Run({absl::StrCat(programs, "/postgres"), "-D", data, "-k", folder_.path(), "-c",
              "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=32MB"},
             log);
  const absl::Time deadline = absl::Now() + absl::Seconds(60);
  absl::Status answered;
  while (absl::Now() < deadline) {
    answered = PostgresConnection::Open(Uri("postgres")).status();
    if (answered.ok() || waitpid(pid_, nullptr, WNOHANG) == pid_) return answered;
    absl::SleepFor(absl::Milliseconds(10));
  }
  return answered;
}

PostgresServer::~PostgresServer() {
  if (pid_ > 0) {
    kill(pid_, SIGQUIT);
    waitpid(pid_, nullptr, 0);
  }
}

std::string PostgresServer::Uri(const std::string& database) const {
  return absl::StrCat("postgresql://hone@/", database, "?host=", folder_.path());
}

absl::Status PostgresServer::Administer(const std::string& sql) {
  HONE_ASSIGN_OR_RETURN(const auto connection, PostgresConnection::Open(Uri("postgres")));
  return connection->Execute(sql);
}

absl::StatusOr<std::string> PostgresServer::DatabaseOf(const std::string& place) {
  const std::string name = std::filesystem::path(place).filename().string();
  if (databases_.insert(name).second) {
    HONE_RETURN_IF_ERROR(Administer(absl::StrCat("CREATE DATABASE \"", name, "\"")));
  }
  return Uri(name);
}

}  // namespace hone::store
