#include "client/cli/fleet/health_check.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/cli/fleet/machine_constants.h"
#include "client/cli/fleet/worker_text.h"
#include "client/cli/output/format.h"
#include "client/cli/session.h"
#include "client/cli/target_argument.h"
#include "client/connection/private_paths.h"
#include "common/base/counted.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"
#include "common/rpc/address.h"
#include "common/rpc/certificate.h"
#include "common/rpc/tls_probe.h"
#include "common/target/host.h"
#include "common/target/target.h"

namespace hone::cli {
namespace {

using State = HealthCheck::State;

constexpr int64_t kLittleSpace = int64_t{1} << 30;
constexpr int kRowsRead = 1000;
constexpr absl::Duration kStoreCheckLimit = absl::Seconds(10);

absl::StatusOr<std::string> KeyOfTarget(const Globals& globals) {
  if (globals.server.empty()) {
    HONE_ASSIGN_OR_RETURN(const TargetArgument argument, ReadTargetArgument(globals.target));
    return argument.Key();
  }
  HONE_ASSIGN_OR_RETURN(const std::unique_ptr<Session> session, Session::Open(globals));
  return session->TargetKey();
}

// Waits for a while until the server has checked its whole store.
client::Connection::StoreReport ReportOfCheckedStore(client::Connection& connection) {
  const absl::Time limit = absl::Now() + kStoreCheckLimit;
  client::Connection::StoreReport report = connection.LastStoreReport();
  while (report.is_being_checked && absl::Now() < limit) {
    absl::SleepFor(absl::Milliseconds(20));
    if (!connection.ListRecords({}, 1).ok()) break;
    report = connection.LastStoreReport();
  }
  return report;
}

constexpr absl::Duration kProbeLimit = absl::Seconds(5);
constexpr absl::Duration kSoon = absl::Hours(24 * 30);
constexpr absl::Duration kLargeSkew = absl::Seconds(5);

void CheckLifetime(absl::string_view whose, const rpc::CertificateFacts& facts,
                   HealthCheck& check) {
  const absl::Time now = absl::Now();
  if (const absl::Status valid = rpc::CheckLifetime(whose, facts, now); !valid.ok()) {
    check.state = State::kProblem;
    check.finding = std::string(valid.message());
    return;
  }
  if (facts.not_after - now > kSoon) return;
  check.state = State::kWarning;
  check.advice = absl::StrCat("the certificate expires on ", rpc::FormatDay(facts.not_after),
                              "; replace it before then");
}

HealthCheck CheckEncryption(const Globals& globals) {
  HealthCheck check{"encryption", State::kOk, "not needed on a Unix socket"};
  const absl::StatusOr<rpc::Address> address = rpc::Address::Parse(globals.server);
  if (address.ok() && address->IsUnix()) return check;
  if (!globals.security.tls()) {
    check.finding = "none: all data is sent as plain text";
    if (address.ok() && address->IsLocal()) return check;
    check.state = State::kWarning;
    check.advice =
        "give the server a certificate (hone-server init), and name its authority here (--ca)";
    return check;
  }
  const absl::StatusOr<rpc::TlsFinding> found =
      rpc::ProbeTls(globals.server, globals.security, kProbeLimit);
  if (!found.ok()) {
    check.state = State::kProblem;
    check.finding = std::string(found.status().message());
    check.advice = "no call can succeed until this is fixed";
    return check;
  }
  check.finding =
      absl::StrCat(found->protocol, "; the server is ", found->server.subject, ", certified by ",
                   found->server.issuer, " until ", rpc::FormatDay(found->server.not_after));
  CheckLifetime("the server's certificate", found->server, check);
  return check;
}

// The name and the role in a certificate.
std::string CallerOf(const std::string& uri) {
  const absl::StatusOr<rpc::Identity> identity = rpc::IdentityFromUri(uri);
  return identity.ok()
             ? absl::StrCat(identity->name, " with the role ", rpc::RoleName(identity->role))
             : uri;
}

HealthCheck CheckIdentity(const Globals& globals) {
  HealthCheck check{"identity", State::kOk, "none"};
  const rpc::ChannelSecurity& security = globals.security;
  if (!security.token.empty()) check.finding = "a token is sent";
  if (!security.identity.certificate.empty()) {
    const auto facts = rpc::DescribeCertificate(security.identity.certificate);
    if (facts.ok()) {
      check.finding = absl::StrCat(security.token.empty() ? "" : "a token is sent, and ",
                                   "a certificate is used: ", CallerOf(facts->uri),
                                   ", valid until ", rpc::FormatDay(facts->not_after));
      CheckLifetime("our own certificate", *facts, check);
    }
  }
  return check;
}

}  // namespace

const char* HealthStateName(State state) {
  switch (state) {
    case State::kOk:
      return "ok";
    case State::kWarning:
      return "warning";
    case State::kProblem:
      return "problem";
  }
  return "";
}

std::vector<HealthCheck> CheckMachine() {
  const target::HostFacts host = target::DescribeHost();
  const target::Target target = target::DetectHost();
  std::vector<HealthCheck> checks;

  HealthCheck isa{
      "instruction set", State::kOk,
      absl::StrCat(host.cpu, ": ", host.isa.empty() ? "no vector extensions" : host.isa)};
  if (target.vector_bits < 256) {
    isa.state = State::kWarning;
    isa.advice =
        "kernels use vectors of at most 128 bits; in a virtual machine, pass the host's CPU "
        "through (QEMU: -cpu host)";
  }
  checks.push_back(isa);
  checks.push_back({"target", State::kOk, target.Key()});

  checks.push_back({"cores", State::kOk, absl::StrCat(host.cores, " usable")});
  return checks;
}

std::vector<HealthCheck> CheckPrograms(const std::string& program_dir) {
  std::vector<HealthCheck> checks;
  std::string missing;
  for (const char* name : {"hone-server", "hone-worker", "hone-builder", "hone-runner"}) {
    if (access(absl::StrCat(program_dir, "/", name).c_str(), X_OK) != 0)
      absl::StrAppend(&missing, " ", name);
  }
  HealthCheck programs{"programs", State::kOk, absl::StrCat("all in ", program_dir)};
  if (!missing.empty()) {
    programs.state = State::kProblem;
    programs.finding = absl::StrCat("missing in ", program_dir, ":", missing);
    programs.advice =
        "build everything (cmake --build --preset release) and keep the programs in one folder";
  }
  checks.push_back(programs);

  const std::string builder = absl::StrCat(program_dir, "/hone-builder");
  if (access(builder.c_str(), X_OK) == 0) {
    const absl::StatusOr<ProgramResult> run = RunProgram({.words = {builder, "--version"}});
    const std::string said =
        run.ok() ? run->output + run->errors : std::string(run.status().message());
    HealthCheck llvm{"LLVM", State::kOk, said.substr(0, said.find('\n'))};
    if (!run.ok() || !run->ok()) {
      llvm.state = State::kProblem;
      llvm.advice =
          "hone-builder does not start; install LLVM 19 (deploy/install-deps.sh, or the package "
          "libllvm19 on a machine that does not build Hone)";
    }
    checks.push_back(llvm);
  }
  return checks;
}

std::vector<HealthCheck> CheckDataFolder() {
  HealthCheck check{"data folder"};
  const absl::StatusOr<std::string> dir = client::DefaultDataDir();
  absl::StatusOr<client::PrivatePaths> paths =
      dir.ok() ? client::MakePrivatePaths(*dir) : dir.status();
  struct statvfs space = {};
  if (!paths.ok()) {
    check.state = State::kProblem;
    check.finding = std::string(paths.status().message());
    check.advice = "make the folder writable, or set XDG_DATA_HOME to one that is";
  } else if (access(paths->data_dir.c_str(), W_OK) != 0) {
    check.state = State::kProblem;
    check.finding = absl::StrCat(paths->data_dir, ": ", strerror(errno));
    check.advice = "make the folder writable, or set XDG_DATA_HOME to one that is";
  } else if (statvfs(paths->data_dir.c_str(), &space) == 0) {
    const int64_t free_bytes =
        static_cast<int64_t>(space.f_bavail) * static_cast<int64_t>(space.f_frsize);
    check.finding = absl::StrCat(paths->data_dir, ", ", FormatBytes(free_bytes), " free");
    if (free_bytes < kLittleSpace) {
      check.state = State::kWarning;
      check.advice =
          "little space is left for records and artifacts; free some, or set XDG_DATA_HOME to "
          "another disk";
    }
  }
  return {check};
}

std::vector<HealthCheck> CheckServer(const Globals& globals) {
  HealthCheck check{globals.server.empty() ? "store" : "server"};
  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Open(globals);
  if (!session.ok()) {
    check.state = State::kProblem;
    check.finding = std::string(session.status().message());
    check.advice =
        globals.server.empty()
            ? "the private server cannot start; see its log, run/server.log in the data folder"
            : "check the address";
    return {check};
  }
  const absl::StatusOr<std::vector<v1::WorkerInfo>> workers =
      (*session)->connection().ListWorkers();
  absl::Status reads = workers.status();
  if (reads.ok()) reads = (*session)->connection().ListJobs(kRowsRead).status();
  // A damaged store can often be opened; reading from it shows the damage.
  if (reads.ok()) reads = (*session)->connection().ListRecords({}, kRowsRead).status();
  if (!globals.server.empty() &&
      (absl::IsUnauthenticated(reads) || absl::IsPermissionDenied(reads))) {
    check.finding = absl::StrCat(globals.server, " answers");  // CheckSecurity reports the cause
    return {check};
  }
  if (!reads.ok()) {
    check.state = State::kProblem;
    check.finding = std::string(reads.message());
    check.advice = globals.server.empty() ? "see run/server.log in the data folder"
                   : absl::IsUnavailable(reads) || absl::IsDeadlineExceeded(reads)
                       ? absl::StrContains(check.finding, "is hone-server running there")
                             ? "check the address and the port"
                         : absl::StrContains(check.finding, "perhaps it requires encryption")
                             ? ""  // the finding says what to do
                             : "is hone-server running there, and is the port open?"
                       : "see the log of hone-server";
    return {check};
  }
  const client::Connection::StoreReport store = ReportOfCheckedStore((*session)->connection());
  if (!store.damage.empty()) {
    check.state = State::kProblem;
    check.finding = absl::StrCat("it is only read, and no job can start: ", store.damage);
    return {check};
  }
  if (globals.server.empty()) {
    check.finding = absl::StrCat((*session)->private_server()->paths().store, " can be read",
                                 store.is_being_checked ? "; it is still being checked" : "");
    return {check};
  }
  const auto connected = std::count_if(workers->begin(), workers->end(),
                                       [](const v1::WorkerInfo& w) { return w.connected(); });
  const auto drained = std::count_if(workers->begin(), workers->end(),
                                     [](const v1::WorkerInfo& w) { return w.draining(); });
  check.finding =
      absl::StrCat(globals.server, " answers; ", connected, " of ",
                   Counted(static_cast<int64_t>(workers->size()), "worker"), " connected",
                   drained > 0 ? absl::StrCat(", ", drained, " drained") : "");
  check.advice = workers->empty() ? absl::StrCat("nothing can be measured; start a worker with: ",
                                                 HowToStartWorker(globals))
                                  : WhyJobsWait(*workers);
  if (!check.advice.empty()) check.state = State::kWarning;
  std::vector<HealthCheck> checks = CheckConstants(*workers);
  checks.insert(checks.begin(), check);
  return checks;
}

std::vector<HealthCheck> CheckTarget(const Globals& globals) {
  if (globals.target.empty()) return {};
  const absl::StatusOr<std::string> key = KeyOfTarget(globals);
  if (key.ok()) return {{"--target", State::kOk, absl::StrCat(globals.target, " is ", *key)}};
  return {{"--target", State::kProblem, std::string(key.status().message()),
           "without --target, kernels are for the CPU of this machine"}};
}

std::vector<HealthCheck> CheckPort(int port) {
  HealthCheck check{"port", State::kOk,
                    absl::StrCat("127.0.0.1:", port, " is free for a server started by hand")};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (fd < 0 || bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    check.state = State::kWarning;
    check.finding = absl::StrCat("127.0.0.1:", port, ": ", strerror(errno));
    check.advice = absl::StrCat("if that is your hone-server, use --server localhost:", port,
                                "; otherwise start hone-server with another --listen");
  }
  if (fd >= 0) close(fd);
  return {check};
}

std::vector<HealthCheck> CheckDevices(const absl::StatusOr<target::DeviceList>& list,
                                      absl::string_view target) {
  using State = HealthCheck::State;
  if (!list.ok()) {
    return {{"GPUs", State::kWarning, std::string(list.status().message()),
             "drivers are loaded by hone-runner; a driver that crashes it must be removed"}};
  }
  std::vector<HealthCheck> checks;
  for (const target::ListedDevice& device : list->devices) {
    if (target::InterfaceOfDevice(device.device) == nullptr) continue;
    const std::string what = absl::StrCat(device.name, " (", device.driver, ")");
    if (!device.problem.empty()) {
      checks.push_back(
          {device.device, State::kWarning, absl::StrCat(what, " cannot be used"), device.problem});
    } else {
      checks.push_back({device.device, device.warning.empty() ? State::kOk : State::kWarning,
                        absl::StrCat(what, ", ", device.target.Key()), device.warning});
    }
  }
  for (const target::GpuInterface& interface : target::GpuInterfaces()) {
    const auto problem = list->problems.find(std::string(interface.word));
    if (problem == list->problems.end()) continue;
    if (target::InterfaceOfDevice(target) == &interface) continue;
    absl::string_view why = problem->second;
    absl::ConsumePrefix(&why, absl::StrCat(interface.name, " cannot be used: "));
    checks.push_back({std::string(interface.name), State::kOk, absl::StrCat("not used: ", why),
                      absl::StrCat("only needed for --target ", interface.word)});
  }
  return checks;
}

std::vector<HealthCheck> CheckNvrtc(const absl::StatusOr<std::string>& description,
                                    bool is_needed) {
  using State = HealthCheck::State;
  constexpr char kName[] = "NVRTC";
  if (!description.ok()) return {};  // another check reports a missing builder
  const auto json = nlohmann::json::parse(*description, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return {};
  if (const auto nvrtc = json.find("nvrtc"); nvrtc != json.end() && nvrtc->is_object()) {
    return {{kName, State::kOk,
             absl::StrCat("version ", nvrtc->value("version", "unknown"), " (",
                          nvrtc->value("path", ""), ") compiles for NVIDIA's GPUs"),
             ""}};
  }
  return {{kName, is_needed ? State::kWarning : State::kOk,
           json.value("nvrtc_problem", "is missing"),
           absl::StrCat(is_needed ? "" : "only ", "needed to build for --target cuda")}};
}

std::vector<HealthCheck> CheckSecurity(const Globals& globals) {
  std::vector<HealthCheck> checks = {CheckEncryption(globals), CheckIdentity(globals)};
  if (checks[0].state == State::kProblem) return checks;
  const absl::StatusOr<std::unique_ptr<Session>> session = Session::Open(globals);
  if (!session.ok()) return checks;
  const absl::StatusOr<absl::Duration> skew = (*session)->connection().ClockSkew();
  if (absl::IsUnauthenticated(skew.status()) || absl::IsPermissionDenied(skew.status())) {
    checks[1].state = State::kProblem;
    checks[1].finding = std::string(skew.status().message());
    checks[1].advice = "ask the server's administrator for a token or a certificate";
  }
  if (!skew.ok()) return checks;
  HealthCheck clock{
      "clock", State::kOk,
      absl::StrFormat("%.1f s %s the server's", absl::ToDoubleSeconds(absl::AbsDuration(*skew)),
                      *skew < absl::ZeroDuration() ? "ahead of" : "behind")};
  if (absl::AbsDuration(*skew) > kLargeSkew) {
    clock.state = State::kWarning;
    clock.advice =
        "certificates may seem expired or not yet valid; synchronize both clocks with NTP";
  }
  checks.push_back(clock);
  return checks;
}

}  // namespace hone::cli
