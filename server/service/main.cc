// hone-server: flags, wiring, waiting.

#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/command_line.h"
#include "common/base/config_file.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/grpc_log.h"
#include "server/job/actor/compiler_environment.h"
#include "server/research/register.h"
#include "server/service/call_observer.h"
#include "server/service/offline_commands.h"
#include "server/service/server.h"
#include "server/service/server_flags.h"
#include "server/store/store.h"
#include "server/web/web_server.h"
#include "spdlog/spdlog.h"

namespace hone {
namespace {

constexpr int kFailure = 1;

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

// What OpenStore will make of a store in a file, for the log: the path may be wrong, and another
// store have the records. "" if the store exists, or is not in a file.
std::string NewPartOf(const std::string& store) {
  if (absl::StrContains(store, "://")) return "";
  std::error_code error;
  const std::filesystem::path file = std::filesystem::absolute(store, error);
  if (std::filesystem::exists(file, error)) return "";
  const bool has_folder = std::filesystem::is_directory(file.parent_path(), error);
  return has_folder ? ", which is new and empty" : ", which is new and empty, in a new folder";
}

// Allows as many descriptors as the system does, up to a number that the default limit of
// connections needs: each connection takes two.
void RaiseDescriptorLimit() {
  constexpr rlim_t kWanted = 65536;
  rlimit files;
  if (getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  const rlim_t allowed = std::min(kWanted, files.rlim_max);
  if (files.rlim_cur >= allowed) return;
  files.rlim_cur = allowed;
  if (setrlimit(RLIMIT_NOFILE, &files) != 0) spdlog::debug("the limit of descriptors stays");
}

// Files of one kind that the server reads again.
struct WatchedFiles {
  const char* what;
  service::FileWatch watch;
  bool is_due = false;  // whether the next successful read is logged

  bool Changed() {
    const bool changed = watch.Changed();
    is_due = is_due || changed;
    return changed;
  }
  // Logs that they were read again. Returns whether they can be used.
  bool Says(const absl::Status& reloaded) {
    if (!reloaded.ok()) {
      spdlog::error("{} were not replaced: {}", what, std::string(reloaded.message()));
    } else if (is_due) {
      spdlog::info("{} were reloaded", what);
    }
    is_due = !reloaded.ok();
    return reloaded.ok();
  }
};

// The files of tokens, of revoked certificates and of certificates, in the order of
// service::Reload.
using AllFiles = std::array<WatchedFiles, 3>;

// Waits for a signal to end, or until the server is deposed; returns true in the latter case.
// Meanwhile reads the files again when they have changed or a SIGHUP arrives, also into `options`.
bool IsDeposedBeforeTheEnd(const service::Flags& flags, const sigset_t& signals, AllFiles& files,
                           service::Server& server, service::ServerOptions& options) {
  constexpr timespec kLook{.tv_sec = 1, .tv_nsec = 0};
  constexpr int kRetry = 60;  // seconds, after which a certificate may have become valid
  int looks = -1;             // number of polls until the files are read again; -1: never
  while (true) {
    const int received = sigtimedwait(&signals, nullptr, &kLook);
    if (received == SIGTERM || received == SIGINT) return false;
    if (server.IsDeposed()) return true;
    bool changed = false;
    for (WatchedFiles& each : files) changed = each.Changed() || changed;
    // A file that has just changed may be incomplete, so it is read after the next poll.
    if (changed) {
      looks = 1;
    } else if (looks > 0) {
      --looks;
    }
    if (received != SIGHUP && looks != 0) continue;
    const auto reloaded = service::Reload(flags, server, options);
    looks = -1;
    for (size_t i = 0; i < files.size(); ++i) {
      if (received == SIGHUP) files[i].is_due = true;
      if (!files[i].Says(reloaded[i])) looks = kRetry;
    }
  }
}

// Makes a later server listen on the ports that the first one got.
void KeepPorts(const service::Server& server, service::ServerOptions& options) {
  const std::vector<rpc::Address> addresses = server.addresses();
  for (size_t i = 0; i < addresses.size(); ++i) options.listen[i].address = addresses[i];
}

int Run(const service::Flags& flags) {
  if (const absl::Status log = SetUpLog("hone-server", flags.log_format, flags.log_level);
      !log.ok()) {
    return Fail(kUsageExitCode, std::string(log.message()));
  }
  // Made before the files are read.
  const std::vector<std::string> certificate_files = service::CertificateFiles(flags);
  AllFiles files = {{{.what = "tokens", .watch = service::FileWatch({flags.tokens})},
                     {.what = "revoked certificates", .watch = service::FileWatch({flags.revoked})},
                     {.what = "certificates", .watch = service::FileWatch(certificate_files)}}};
  absl::StatusOr<service::ServerOptions> options = service::ToOptions(flags);
  if (!options.ok()) return Fail(kUsageExitCode, std::string(options.status().message()));
  if (flags.check_config) {
    printf("the configuration is in order\n");
    return 0;
  }
  if (flags.check_health) {
    rpc::TakeGrpcLog(rpc::GrpcLog::kCaller);
    const absl::Status healthy = service::CheckHealth(flags, *options);
    if (!healthy.ok()) return Fail(kFailure, std::string(healthy.message()));
    printf("the server serves\n");
    return 0;
  }
  rpc::TakeGrpcLog(rpc::GrpcLog::kServer);
  // Distributions build Abseil with deadlock detection, which takes more time than anything else if
  // there are a thousand connections.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const int threads = options->threads;

  // A private server ends with the process that started it. Only this thread receives the signals,
  // so they are blocked before any other thread is started.
  const pid_t parent = getppid();
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  // If there is no file to read again, SIGHUP ends the server, for example when its terminal
  // closes.
  if (!flags.tokens.empty() || !flags.revoked.empty() || !certificate_files.empty()) {
    sigaddset(&signals, SIGHUP);
  }
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  RaiseDescriptorLimit();
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // the store handles a file size limit like a full disk
  if (flags.private_mode) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) return 0;
  }
  umask(077);  // only this user may access the sockets and the store

  std::unique_ptr<service::Metrics> metrics;
  if (!flags.metrics_listen.empty()) {
    absl::StatusOr<std::unique_ptr<service::Metrics>> started =
        service::Metrics::Start(*rpc::Address::Parse(flags.metrics_listen));
    if (!started.ok()) return Fail(kFailure, std::string(started.status().message()));
    metrics = *std::move(started);
    options->observer = metrics.get();
  }
  // A private server serves the page only once its user asks for it.
  std::unique_ptr<web::WebServer> page;
  if (!flags.web_listen.empty() || flags.private_mode) {
    web::WebServer::Options web{.insecure = flags.security.insecure,
                                .on_demand = flags.web_listen.empty()};
    if (!flags.web_listen.empty()) web.listen = *rpc::Address::Parse(flags.web_listen);
    absl::StatusOr<std::unique_ptr<web::WebServer>> started = web::WebServer::Start(web);
    if (!started.ok()) return Fail(kFailure, std::string(started.status().message()));
    page = *std::move(started);
    options->dashboard = page.get();
  }
  if (const absl::Status can = service::CheckCanStart(*options); !can.ok()) {
    return Fail(kFailure, "cannot start", can);
  }
  const std::string new_part = NewPartOf(flags.store);
  absl::StatusOr<std::unique_ptr<store::Store>> opened = store::OpenStore(flags.store);
  if (!opened.ok()) {
    const std::string name = store::StoreName(flags.store);
    const std::string why(opened.status().message());
    if (absl::StrContains(why, name)) return Fail(kFailure, why);
    return Fail(kFailure, absl::StrCat("the store ", name), opened.status());
  }
  const std::shared_ptr<store::Store> store = *std::move(opened);
  absl::StatusOr<std::unique_ptr<service::Server>> server;
  const auto start = [&]() -> absl::Status {
    server = service::Server::Start(*options, store, job::MakeCompilerEnvironment(threads));
    HONE_RETURN_IF_ERROR(server.status());
    KeepPorts(**server, *options);
    if (metrics != nullptr) metrics->Watch([raw = server->get()] { return raw->Metrics(); });
    if (page != nullptr) page->Serve(**server);
    return absl::OkStatus();
  };
  const auto unwatch = [&] {
    if (metrics != nullptr) metrics->Watch(nullptr);
    if (page != nullptr) page->Stop();
  };
  if (const absl::Status started = start(); !started.ok()) {
    return Fail(kFailure, "cannot start", started);
  }
  if (metrics != nullptr) spdlog::info("metrics on port {}", metrics->port());
  if (page != nullptr && page->port() != 0) spdlog::info("web page on port {}", page->port());
  for (const rpc::Address& address : (*server)->addresses()) {
    spdlog::info("serving on {}, store {}{}", address.ToText(), store::StoreName(flags.store),
                 new_part);
  }
  if (!flags.ready_file.empty()) {
    const absl::Status written = WriteFileAtomically(flags.ready_file, ReadyText(**server));
    if (!written.ok()) {
      unwatch();  // the server is destroyed first
      return Fail(kFailure, "--ready-file", written);
    }
  }

  while (IsDeposedBeforeTheEnd(flags, signals, files, **server, *options)) {
    // A new server competes again, and then loads everything from the store.
    unwatch();
    server->reset();
    if (const absl::Status started = start(); !started.ok()) {
      return Fail(kFailure, "cannot start again", started);
    }
  }
  spdlog::info("shutting down, within {} s", flags.shutdown_limit);
  alarm(static_cast<unsigned>(flags.shutdown_limit) + 5);  // ends the process if Shutdown hangs
  unwatch();
  const bool has_ended = (*server)->Shutdown(absl::Seconds(flags.shutdown_limit));
  for (const rpc::Address& address : (*server)->addresses()) {
    if (address.IsUnix()) unlink(address.path.c_str());
  }
  if (!flags.ready_file.empty()) unlink(flags.ready_file.c_str());
  const int code = (*server)->failure().ok() ? 0 : kFailure;
  if (!has_ended) {
    spdlog::info("exits while work still runs; unfinished jobs continue when a server is started");
    spdlog::default_logger()->flush();
    _exit(code);  // threads still use what destructors would destroy
  }
  return code;
}

int Initialize(const service::InitOptions& options) {
  const absl::StatusOr<service::InitReport> report = service::Initialize(options, absl::Now());
  if (!report.ok()) {
    return Fail(service::ExitCodeFor(report.status()), std::string(report.status().message()));
  }
  for (const std::string& file : report->files) printf("made %s\n", file.c_str());
  printf("\nThe server will listen on %s. Start it with:\n  hone-server --config %s\n",
         absl::StrJoin(report->listen, ", ").c_str(), report->config.c_str());
  return 0;
}

std::string HostName() {
  char name[256] = {};
  return gethostname(name, sizeof(name) - 1) == 0 && *name != 0 ? name : "localhost";
}

void AddOptions(Command& app, service::Flags& flags) {
  const auto add_listen = [&](const char* name, std::vector<std::string>& addresses,
                              const char* help) {
    app.Add(name, addresses, help, {OneWordPerUse()});
  };
  add_listen("--listen", flags.listen,
             "Address to serve on: unix:/path, host:port or [ipv6]:port; may be repeated");
  add_listen("--listen-clients", flags.listen_clients, "Address for clients only");
  add_listen("--listen-workers", flags.listen_workers, "Address for workers only");
  add_listen("--listen-admin", flags.listen_admin, "Address for administrators only");
  app.Add("--store", flags.store,
          "Database file, created if it does not exist; or postgresql://user@host/database");
  app.Add("--certificate", flags.security.certificate,
          "The server's certificate (PEM); turns on encryption of TCP connections");
  app.Add("--key", flags.security.key, "Private key of the certificate (PEM)");
  app.Add("--client-ca", flags.security.client_ca, "Authorities of callers' certificates (PEM)");
  app.Add("--client-certificates", flags.security.client_certificates,
          "none (default), accept (a caller without one needs a token) or require",
          {OneOf({"none", "accept", "require"})});
  app.Add("--tokens", flags.tokens,
          "File with the role, the name and the token's hash of each caller");
  app.Add("--revoked", flags.revoked,
          "File with the serial numbers of revoked certificates; hone-server revoke adds to it");
  app.AddFlag("--insecure", flags.security.insecure,
              "Allow addresses that other machines can reach without encryption or authentication");
  app.Add("--rate-limit", flags.rate_limit,
          "Calls per second that each caller may make; 0: no limit",
          {ShowDefault(), Range(0.0, 1e9)});
  app.Add("--upload-limit", flags.upload_limit_mib,
          "Memory for all active uploads together, in MiB", {ShowDefault(), Range(64, 1 << 20)});
  app.Add("--keep-records", flags.keep_records,
          "Days after which measurements are removed that no search, model or best needs; 0: never",
          {ShowDefault(), Range(0, 36500)});
  app.Add("--keep-bests", flags.keep_bests,
          "Days after which bests are removed that were replaced; 0: never",
          {ShowDefault(), Range(0, 36500)});
  app.Add("--keep-events", flags.keep_events,
          "Days after which the steps of jobs that are done are removed; 0: never",
          {ShowDefault(), Range(0, 36500)});
  app.Add(
      "--keep-jobs", flags.keep_jobs,
      "Days after which jobs that have ended are removed; until then, those that failed or were "
      "cancelled can be resumed; 0: never",
      {ShowDefault(), Range(0, 36500)});
  app.Add("--store-limit", flags.store_limit_gib,
          "Size of the store in GiB, beyond which measurements are removed earlier, the oldest "
          "first, but none of the last 30 days; 0: no limit",
          {ShowDefault(), Range(0, 1 << 20)});
  app.Add("--connection-limit", flags.connection_limit, "TCP connections at a time",
          {ShowDefault(), Range(1, 1 << 20)});
  app.Add("--host-connection-limit", flags.host_connection_limit,
          "TCP connections of one address at a time, which may be that of a whole network (NAT)",
          {ShowDefault(), Range(1, 1 << 20)});
  app.Add("--audit-log", flags.audit_log, "File for the audit log of calls, as JSON lines");
  app.Add("--metrics-listen", flags.metrics_listen,
          "Address for Prometheus (GET /metrics), host:port of this machine");
  app.Add("--web-listen", flags.web_listen,
          "Address of the web page, host:port of this machine; hone dashboard opens it");
  app.Add("--log-format", flags.log_format, "text or json", {ShowDefault()});
  app.Add("--log-level", flags.log_level, "debug, info, warning, error or off", {ShowDefault()});
  app.AddFlag(
      "--private", flags.private_mode,
      "Serve one user: exit when the parent process exits, and cancel jobs that no client watches");
  app.Add("--ready-file", flags.ready_file,
          "File to write once the server is ready, with its process id and addresses");
  app.Add("--threads", flags.threads,
          "Threads that evaluate candidates and train models; 0: one per core", {Range(0, 1024)});
  app.Add("--shutdown-limit", flags.shutdown_limit,
          "Time limit for a shutdown, which ends calls and saves jobs, in seconds",
          {ShowDefault(), Range(1.0, 600.0)});
  app.AddFlag("--check-config", flags.check_config, "Check the configuration and exit");
  app.AddFlag(
      "--check-health", flags.check_health,
      "Ask the server that runs with this configuration whether it serves, and exit: with 0 "
      "if it does, with 1 if it does not");
}

Command& AddInit(Command& app, service::InitOptions& options) {
  Command& init = app.AddCommand("init",
                                 "Create the files that a server for a team needs: authority, "
                                 "certificates, tokens, hone.toml");
  init.Add("DIR", options.folder, "Folder for the files, none of which may exist yet",
           {Required()});
  init.Add("--host", options.hosts,
           "Name or address by which clients and workers reach the server; may be repeated; "
           "default: this machine's name. The server listens on the given addresses, or on every "
           "address of this machine if a name is given",
           {OneWordPerUse()});
  init.Add("--port", options.port, "TCP port", {ShowDefault(), Range(1, 65535)});
  init.Add("--store", options.store,
           "Database file, or postgresql://user@host/database; default: hone.db in the folder");
  init.Add("--worker", options.workers,
           "Name of a worker to make a configuration for; may be repeated", {OneWordPerUse()});
  return init;
}

}  // namespace
}  // namespace hone

int main(int argc, char** argv) {
  hone::research::Register();
  if (const std::optional<int> code = hone::service::RunOfflineCommand(argc, argv)) return *code;
  hone::Command app{
      "Hone's server: keeps jobs and records, searches, and hands work to the workers. Without a "
      "command it serves until a signal ends it."};
  app.Footer(
      "Examples:\n"
      "  hone-server init /etc/hone --host hone.internal\n"
      "  hone-server --config /etc/hone/hone.toml\n"
      "  hone-server --listen localhost:7070 --store /var/lib/hone/hone.db\n"
      "  hone-server restore --store /var/lib/hone/hone.db --from /backups/hone.db\n"
      "  hone-server merge --store /var/lib/hone/hone.db --from old/hone.db\n"
      "  hone-server revoke /etc/hone pi-07\n"
      "Exit codes: 0 ended by a signal, or done (init, restore, merge, revoke), 1 failed (the "
      "store cannot "
      "be opened or is damaged, an address is in use, a file cannot be written), 2 wrong usage or "
      "configuration "
      "(such as a name that cannot be used, or a missing file).");
  hone::service::Flags flags;
  hone::service::InitOptions init_options;
  hone::AddOptions(app, flags);
  const hone::Command& init = hone::AddInit(app, init_options);
  const auto offline = hone::service::ListOfflineCommands(app);
  app.RequireCommand(0, 1);
  app.AddConfigFile({}, {"check-config", "check-health"});
  app.AddVersion("hone-server " HONE_VERSION);
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  if (std::any_of(offline.begin(), offline.end(), std::mem_fn(&hone::Command::Given))) {
    std::fprintf(stderr, "hone-server: restore, merge and revoke must come before all options\n");
    return hone::kUsageExitCode;
  }
  if (init.Given()) {
    if (init_options.hosts.empty()) init_options.hosts = {hone::HostName()};
    return hone::Initialize(init_options);
  }
  return hone::Run(flags);
}
