// hone-server: flags, wiring, waiting.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/rpc/address.h"
#include "server/service/offline_commands.h"
#include "server/service/server.h"
#include "server/store/store.h"
#include "server/task/compiler_environment.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

constexpr int kFailure = 1;
constexpr int kUsage = 2;

struct Flags {
  std::vector<std::string> listen;
  std::string store;
  std::string ready_file;
  bool insecure = false;
  bool private_mode = false;
  int threads = 0;
};

int Fail(int code, const std::string& what) {
  fprintf(stderr, "hone-server: %s\n", what.c_str());
  return code;
}

int Fail(int code, absl::string_view what, const absl::Status& why) {
  return Fail(code, absl::StrCat(what, ": ", why.message()));
}

std::string ReadyText(const service::Server& server) {
  std::string text = absl::StrCat("pid ", getpid(), "\n");
  for (const rpc::Address& address : server.addresses()) {
    absl::StrAppend(&text, "listen ", address.ToText(), "\n");
  }
  return text;
}

int Run(const Flags& flags) {
  service::ServerOptions options{.insecure = flags.insecure, .private_mode = flags.private_mode};
  options.threads = flags.threads > 0
                        ? flags.threads
                        : static_cast<int>(std::max(2u, std::thread::hardware_concurrency()));
  const int threads = options.threads;
  for (const std::string& text : flags.listen) {
    absl::StatusOr<rpc::Address> address = rpc::Address::Parse(text);
    if (!address.ok()) return Fail(kUsage, "--listen", address.status());
    if (absl::Status allowed = rpc::CheckAllowed(*address, flags.insecure); !allowed.ok()) {
      return Fail(kUsage, "--listen", allowed);
    }
    options.listen.push_back(*std::move(address));
  }

  // A private server ends with the process that started it. The signals are taken by this thread
  // alone, so they are blocked before any other thread is made.
  const pid_t parent = getppid();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  if (flags.private_mode) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) return 0;
  }
  umask(077);  // sockets and the store are the user's alone

  absl::StatusOr<std::unique_ptr<store::Store>> store = store::OpenStore(flags.store);
  if (!store.ok())
    return Fail(kFailure, absl::StrCat("the store ", store::StoreName(flags.store)),
                store.status());
  absl::StatusOr<std::unique_ptr<service::Server>> server = service::Server::Start(
      std::move(options), *std::move(store), task::MakeCompilerEnvironment(threads));
  if (!server.ok()) return Fail(kFailure, "cannot start", server.status());
  for (const rpc::Address& address : (*server)->addresses()) {
    spdlog::info("serving on {}, store {}", address.ToText(), store::StoreName(flags.store));
  }
  if (!flags.ready_file.empty()) {
    const absl::Status written = WriteFileAtomically(flags.ready_file, ReadyText(**server));
    if (!written.ok()) return Fail(kFailure, "--ready-file", written);
  }

  int received = 0;
  sigwait(&signals, &received);
  spdlog::info("shutting down, within {} s", absl::ToInt64Seconds(service::Server::kShutdownLimit));
  alarm(absl::ToInt64Seconds(service::Server::kShutdownLimit) + 1);  // nothing may hold us longer
  (*server)->Shutdown();
  for (const rpc::Address& address : (*server)->addresses()) {
    if (address.IsUnix()) unlink(address.path.c_str());
  }
  if (!flags.ready_file.empty()) unlink(flags.ready_file.c_str());
  return 0;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("hone-server"));
  spdlog::set_pattern("%Y-%m-%dT%H:%M:%S.%e %l %v");
  if (const std::optional<int> code = hone::service::RunOfflineCommand(argc, argv)) return *code;
  CLI::App app{"Hone's server: keeps jobs and records, searches, and hands work to the workers."};
  app.footer(
      "Examples:\n"
      "  hone-server --listen unix:/run/user/1000/hone.sock --store ~/.local/share/hone/hone.db\n"
      "  hone-server --listen localhost:7070 --store /var/lib/hone/hone.db\n"
      "Exit codes: 0 ended by a signal, 1 failed (the store cannot be opened, an address is in "
      "use), "
      "2 usage.");
  hone::Flags flags;
  app.add_option("--listen", flags.listen,
                 "Address to serve on: unix:/path, host:port or [ipv6]:port; may be repeated")
      ->required()
      ->expected(1)
      ->take_all();
  app.add_option("--store", flags.store,
                 "Database file, made when it is missing; or postgresql://user@host/database")
      ->required();
  app.add_flag("--insecure", flags.insecure,
               "Also serve addresses of other machines, without encryption");
  app.add_flag("--private", flags.private_mode,
               "Serve one user: end with the process that started this one, and cancel jobs that "
               "nobody watches");
  app.add_option("--ready-file", flags.ready_file,
                 "File to write, with the process id and the addresses, once calls are answered");
  app.add_option("--threads", flags.threads,
                 "Threads that evaluate candidates and train; 0: one per core")
      ->check(CLI::Range(0, 1024));
  app.set_version_flag("--version", "hone-server " HONE_VERSION);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? 0 : hone::kUsage;
  }
  return hone::Run(flags);
}
