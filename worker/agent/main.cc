// hone-worker: the agent of one device. See --help.
#include <fcntl.h>
#include <nss.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <random>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "common/base/command_line.h"
#include "common/base/config_file.h"
#include "common/base/file.h"
#include "common/base/host_lock.h"
#include "common/base/log.h"
#include "common/base/program.h"
#include "common/base/status_macros.h"
#include "common/rpc/grpc_log.h"
#include "common/rpc/security.h"
#include "common/target/host.h"
#include "worker/agent/child_process.h"
#include "worker/agent/machine.h"
#include "worker/agent/runner_client.h"
#include "worker/agent/server_link.h"
#include "worker/agent/worker.h"
#include "worker/sandbox/guards.h"

namespace {

using hone::Excludes;
using hone::kUsageExitCode;
using hone::NotEmpty;
using hone::PlainName;
using hone::Range;
using hone::ShowDefault;

constexpr int kFailed = 1;

// Prints an error that does not belong into the log. Returns the exit code.
int Fail(const absl::Status& status, int code = kFailed) {
  fprintf(stderr, "hone-worker: %s\n", std::string(status.message()).c_str());
  return code;
}

struct Flags {
  std::string server;
  std::string device = "cpu";
  std::string cluster;
  bool list_devices = false;
  bool doctor = false;
  std::string name;
  std::string state_dir;
  std::string program_dir;
  std::string ready_file;
  std::string lock = hone::HostLock::DefaultPath();
  int build_slots = 0;
  bool build_only = false;
  bool run_only = false;
  double compile_limit = 10;
  double run_limit = 10;
  int64_t whole_reference = 2048;  // MiB
  hone::rpc::SecuritySources security;
  std::string key_file;
  std::string log_format = "text";
  std::string log_level = "info";
  bool exit_with_parent = false;
  bool unconfined = false;
  bool allow_unguarded_files = false;
};

std::string DefaultStateDir() {
  const std::string folder = hone::UserFolder("XDG_STATE_HOME", ".local/state");
  return folder.empty() ? "/var/lib/hone/worker" : absl::StrCat(folder, "/worker");
}

// Locks the state folder until this process ends, so that no other agent uses it.
// FailedPrecondition: another agent has locked it.
absl::Status LockStateDir(const std::string& state_dir) {
  const std::string path = state_dir + "/lock";
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return hone::ErrnoStatus(errno, absl::StrCat("open ", path));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return hone::ErrnoStatus(errno, absl::StrCat("lock ", path));
    return absl::FailedPreconditionError(absl::StrCat("another hone-worker uses ", state_dir,
                                                      "; give this one its own --state-dir"));
  }
  return absl::OkStatus();
}

// Returns --name, or else a name kept in the state folder: the host's name and a few random digits,
// because a host may have several workers.
absl::StatusOr<std::string> WorkerId(const Flags& flags) {
  if (!flags.name.empty()) return flags.name;
  const std::string path = flags.state_dir + "/name";
  if (const auto kept = hone::ReadFile(path); kept.ok()) {
    const std::string name(absl::StripAsciiWhitespace(*kept));
    if (!name.empty()) return name;
  }
  std::random_device device;
  const std::string name = absl::StrCat(hone::target::DescribeHost().name, "-",
                                        absl::Hex(device() & 0xffffff, absl::kZeroPad6));
  HONE_RETURN_IF_ERROR(hone::WriteFileAtomically(path, name + "\n"));
  return name;
}

// InvalidArgument: the configuration is wrong. This is the only error, because the worker connects
// later.
absl::StatusOr<std::unique_ptr<hone::agent::ServerLink>> LinkOf(const Flags& flags) {
  const auto security = hone::rpc::LoadSecurity(flags.security);
  if (!security.ok()) return absl::InvalidArgumentError(security.status().message());
  // The worker tries again until the clock is right: a board without a battery begins in 1970.
  const absl::Status own = hone::rpc::CheckOwnLifetime(*security, absl::Now());
  if (!own.ok()) spdlog::warn("{} (trying again)", std::string(own.message()));
  auto link = hone::agent::ConnectToServer(flags.server, *security);
  if (!link.ok()) return absl::InvalidArgumentError(link.status().message());
  return link;
}

// Checks that code of clients can be confined. Unavailable: it cannot, and this is not allowed.
absl::Status CheckGuards(const Flags& flags) {
  if (!flags.unconfined) HONE_RETURN_IF_ERROR(hone::sandbox::CheckSystemCallFilters());
  if (!flags.allow_unguarded_files) HONE_RETURN_IF_ERROR(hone::sandbox::CheckFileGuard());
  return absl::OkStatus();
}

// The words that tell hone-builder and hone-runner what the user allows.
void AddAllowances(const Flags& flags, std::vector<std::string>& command) {
  if (flags.unconfined) command.push_back("--unconfined");
  if (flags.allow_unguarded_files) command.push_back("--allow-unguarded-files");
}

// Returns the RunnerCommand. It is empty, and this worker only builds, if --build-only is given, or
// if hone-runner is missing and neither --device nor --run-only demands it. FailedPrecondition:
// hone-runner is missing or does not work.
absl::StatusOr<std::vector<std::string>> RunnerOf(const Flags& flags) {
  if (flags.build_only) return std::vector<std::string>{};
  absl::StatusOr<std::vector<std::string>> command = hone::agent::RunnerCommand(flags.program_dir);
  if (absl::IsNotFound(command.status()) && flags.device == "cpu" && !flags.run_only) {
    return std::vector<std::string>{};
  }
  if (!command.ok()) return absl::FailedPreconditionError(command.status().message());
  return command;
}

// Logs what this machine lacks for measuring. Returns the errors of CheckBoard.
absl::Status WarnOfBoard(const std::vector<std::string>& runner, const std::string& state_dir) {
  HONE_ASSIGN_OR_RETURN(const auto findings, hone::agent::CheckBoard(runner, state_dir));
  for (const hone::agent::BoardFinding& finding : findings) {
    if (!finding.ok) spdlog::warn("{}: {}; {}", finding.name, finding.finding, finding.advice);
  }
  return absl::OkStatus();
}

// Restricts this program, and the programs that it starts, to the cores of --cluster.
// InvalidArgument: there is no such cluster, or it cannot be used.
absl::Status UseCluster(const std::string& name) {
  if (name.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(
      const hone::target::CpuCluster cluster,
      hone::target::FindCluster(hone::target::CpuClusters("", hone::target::UsableCpus()), name));
  const absl::Status used = hone::target::UseCpus(cluster.cpus);
  return used.ok()
             ? used
             : absl::InvalidArgumentError(absl::StrCat("--cluster ", name, ": ", used.message()));
}

// The signals that end the program. They are blocked in all threads.
sigset_t EndingSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Waits for a signal that ends the program, in a thread that outlives this object.
class SignalThread {
 public:
  SignalThread() { std::thread(Await, state_).detach(); }
  ~SignalThread() { Ignore(); }
  SignalThread(const SignalThread&) = delete;
  SignalThread& operator=(const SignalThread&) = delete;

  // From now on, a signal stops this worker, which must exist until Ignore. Before, a signal ends
  // the program at once.
  void StopOnSignal(hone::agent::Worker* worker) {
    absl::MutexLock lock(&state_->mutex);
    state_->worker = worker;
  }
  // From now on, signals have no effect.
  void Ignore() {
    absl::MutexLock lock(&state_->mutex);
    state_->ignores = true;
  }

 private:
  struct State {
    absl::Mutex mutex;
    hone::agent::Worker* worker ABSL_GUARDED_BY(mutex) = nullptr;
    bool ignores ABSL_GUARDED_BY(mutex) = false;
  };
  static void Await(const std::shared_ptr<State>& state) {
    const sigset_t signals = EndingSignals();
    int signal = 0;
    sigwait(&signals, &signal);
    // KillAll makes the child processes of the main thread fail. This thread keeps the mutex, so
    // that the main thread then waits in Ignore and does not end the program with an error.
    absl::MutexLock lock(&state->mutex);
    if (state->ignores) return;
    if (state->worker != nullptr) {
      state->worker->Stop();
      return;
    }
    spdlog::info("stopped before it was ready");
    hone::agent::ChildProcess::KillAll();
    std::_Exit(0);
  }

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

// Calls the server while this machine is measured, which takes seconds, and logs at once why the
// call fails. The worker connects later, because the server may be started meanwhile. The
// destructor ends the calls of `link`.
class EarlyCall {
 public:
  explicit EarlyCall(hone::agent::ServerLink* link) : link_(link), thread_(Call, link) {}
  ~EarlyCall() {
    link_->Shutdown();
    thread_.join();
  }
  EarlyCall(const EarlyCall&) = delete;
  EarlyCall& operator=(const EarlyCall&) = delete;

 private:
  static void Call(hone::agent::ServerLink* link) {
    // No artifact has this digest, which has no effect on the server.
    const absl::Status status = link->Download(std::string(64, '0')).status();
    if (status.ok() || absl::IsNotFound(status) || absl::IsCancelled(status)) return;
    spdlog::warn("{} (trying again after measuring this machine)", std::string(status.message()));
  }

  hone::agent::ServerLink* const link_;
  std::thread thread_;
};

// InvalidArgument: the configuration is wrong.
absl::Status Work(Flags flags) {
  SignalThread signal_thread;
  HONE_RETURN_IF_ERROR(CheckGuards(flags));
  HONE_ASSIGN_OR_RETURN(const auto link, LinkOf(flags));
  HONE_RETURN_IF_ERROR(hone::MakeDirectories(flags.state_dir));
  HONE_RETURN_IF_ERROR(LockStateDir(flags.state_dir));
  hone::agent::WorkerOptions options;
  HONE_ASSIGN_OR_RETURN(options.worker_id, WorkerId(flags));
  HONE_ASSIGN_OR_RETURN(const std::vector<std::string> runner, RunnerOf(flags));
  const EarlyCall early_call(link.get());
  if (!runner.empty()) HONE_RETURN_IF_ERROR(WarnOfBoard(runner, flags.state_dir));
  HONE_ASSIGN_OR_RETURN(options.capabilities,
                        hone::agent::DescribeMachine({.device = flags.device,
                                                      .program_dir = flags.program_dir,
                                                      .state_dir = flags.state_dir,
                                                      .build_slots = flags.build_slots,
                                                      .build = !flags.run_only,
                                                      .runner = runner,
                                                      .lock = flags.lock}));
  options.state_dir = flags.state_dir;
  options.builder.command = {flags.program_dir + "/hone-builder", "--lock", flags.lock};
  AddAllowances(flags, options.builder.command);
  options.builder.cpu_limit = absl::Seconds(flags.compile_limit);
  options.runner.command = runner;
  options.runner.command.insert(
      options.runner.command.end(),
      {"--lock", flags.lock, "--whole-reference", absl::StrCat(flags.whole_reference << 20)});
  AddAllowances(flags, options.runner.command);
  options.runner.reference_command = options.runner.command;
  // Only candidates run on the device; references are computed on the CPU.
  if (flags.device != "cpu") {
    options.runner.command.insert(options.runner.command.end(), {"--device", flags.device});
  }
  options.run_limit = absl::Seconds(flags.run_limit);
  HONE_ASSIGN_OR_RETURN(const auto worker,
                        hone::agent::Worker::Create(std::move(options), link.get()));

  signal_thread.StopOnSignal(worker.get());
  spdlog::info("connecting to {}", flags.server);
  absl::Status ready_written;
  const absl::Status worked = worker->Run([&] {
    spdlog::info("registered with {}", flags.server);
    if (!flags.ready_file.empty()) {
      ready_written = hone::WriteFileAtomically(flags.ready_file, "ready\n");
      if (!ready_written.ok()) spdlog::error("{}", std::string(ready_written.message()));
    }
  });
  signal_thread.Ignore();
  if (absl::IsPermissionDenied(worked)) return absl::InvalidArgumentError(worked.message());
  return worked;
}

// Prints what this machine has for measuring and what it lacks.
int PrintDoctor(const Flags& flags) {
  const auto runner = hone::agent::RunnerCommand(flags.program_dir);
  const auto findings =
      runner.ok() ? hone::agent::CheckBoard(*runner, flags.state_dir) : runner.status();
  if (!findings.ok()) return Fail(findings.status());
  fputs(hone::agent::ToText(*findings).c_str(), stdout);
  return 0;
}

// Prints a line for each device: its name for --device, its target's key, its model and its driver.
int PrintDevices(const std::string& program_dir) {
  const auto runner = hone::agent::RunnerCommand(program_dir);
  const absl::StatusOr<hone::target::DeviceList> list =
      runner.ok() ? hone::agent::ListDevices(*runner) : runner.status();
  if (!list.ok()) return Fail(list.status());
  size_t names = 0, keys = 0;
  for (const hone::target::ListedDevice& device : list->devices) {
    names = std::max(names, device.device.size());
    keys = std::max(keys, device.target.Key().size());
  }
  for (const hone::target::ListedDevice& device : list->devices) {
    const std::string key = device.problem.empty() ? device.target.Key() : "unusable";
    printf("%-*s  %-*s  %s%s%s%s%s\n", static_cast<int>(names), device.device.c_str(),
           static_cast<int>(keys), key.c_str(), device.name.c_str(),
           device.driver.empty() ? "" : ", ", device.driver.c_str(),
           device.problem.empty() ? "" : ": ", device.problem.c_str());
  }
  for (const hone::target::GpuInterface& interface : hone::target::GpuInterfaces()) {
    const auto problem = list->problems.find(std::string(interface.word));
    if (problem == list->problems.end()) continue;
    printf("no %s device: %s\n", std::string(interface.name).c_str(), problem->second.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  hone::Command app("Builds and measures kernels on this machine for a Hone server.");
  app.Footer(
      "It runs until it is stopped (SIGTERM, SIGINT). Results that were measured while the server "
      "was unreachable are sent later.\n\n"
      "Examples:\n"
      "  hone-worker --config pi-07.conf          # made by hone worker-config\n"
      "  hone-worker --server localhost:7070 --name pi-07\n"
      "  hone-worker --server unix:/run/hone/hone.sock --build-slots 2\n"
      "  hone-worker --config board-3.conf --run-only\n"
      "  hone-worker --list-devices\n"
      "  hone-worker --doctor\n"
      "  hone-worker --config rock-5-big.conf --cluster big\n"
      "  hone-worker --server localhost:7070 --device cuda:0\n"
      "The workers of a machine take turns with timing, except those of different GPUs, unless "
      "they have different --lock files.\n"
      "Exit codes: 0 ended by a signal, 1 failed (a program is missing, the state folder is in "
      "use), 2 usage or configuration (such as the credentials of another worker).");
  Flags flags;
  app.Add("--server", flags.server,
          "The server's address: host:port or unix:PATH, or several, separated by commas, of a "
          "leader and its standbys; required");
  app.Add(
      "--ca", flags.security.ca,
      "PEM file with the authorities of the server's certificate, or system; turns on encryption");
  app.Add("--certificate", flags.security.certificate, "PEM file with this worker's certificate");
  app.Add("--token-file", flags.security.token_file, "File with this worker's token");
  app.Add("--server-name", flags.security.server_name,
          "Name in the server's certificate, if the server is reached by another name");
  app.Add("--name", flags.name, "The worker's name; default: host name and random digits",
          {PlainName()});
  app.Add("--build-slots", flags.build_slots, "Builder processes; 0: one per core",
          {Range(0, 256)});
  app.AddFlag("--build-only", flags.build_only, "Build for other workers and measure nothing");
  app.AddFlag("--run-only", flags.run_only,
              "Measure kernels that other workers build; hone-builder is not needed",
              {Excludes("--build-only")});
  app.Add(
      "--device", flags.device,
      "The device to measure on: cpu, cuda or opencl (the first such device), cuda:N or opencl:N",
      {ShowDefault(), NotEmpty(), Excludes("--build-only")});
  app.Add("--cluster", flags.cluster,
          "Use only the cores of one kind of a big.LITTLE or hybrid processor: big, little or a "
          "number, as --doctor lists them",
          {NotEmpty()});
  app.AddFlag("--list-devices", flags.list_devices,
              "Print the devices of this machine with the keys of their targets, and exit");
  app.AddFlag("--doctor", flags.doctor,
              "Check whether this machine is suitable for measuring, print advice, and exit");
  app.Add("--state-dir", flags.state_dir, "Folder for artifacts, references and unsent results",
          {ShowDefault(DefaultStateDir())});
  app.Add("--program-dir", flags.program_dir,
          "Folder with hone-builder and hone-runner; default: the folder of hone-worker");
  app.Add("--ready-file", flags.ready_file,
          "File to write once the server has answered and does not refuse this worker");
  app.Add("--lock", flags.lock, "The host's timing lock", {ShowDefault()});
  app.Add("--compile-limit", flags.compile_limit,
          "Limit for the processor time of one build, in seconds",
          {ShowDefault(), Range(0.1, 3600.0)});
  app.Add("--run-limit", flags.run_limit, "Limit for checking and timing one kernel, in seconds",
          {ShowDefault(), Range(0.1, 3600.0)});
  app.Add("--whole-reference", flags.whole_reference,
          "Size in MiB of a reference; of a larger one, only some thousand elements are computed "
          "and compared",
          {ShowDefault(), Range(1, 1 << 20)});
  app.AddFlag("--insecure", flags.security.insecure,
              "Allow a server on another machine without TLS");
  app.AddFlag("--unconfined", flags.unconfined,
              "Work even where the system cannot filter the system calls of kernels and compilers "
              "(no seccomp)");
  app.AddFlag("--allow-unguarded-files", flags.allow_unguarded_files,
              "Work even where the system cannot guard files from kernels and compilers (no "
              "Landlock)");
  app.Add("--log-format", flags.log_format, "text or json", {ShowDefault()});
  app.Add("--log-level", flags.log_level, "debug, info, warning, error or off", {ShowDefault()});
  app.AddFlag("--exit-with-parent", flags.exit_with_parent, "Exit when the parent process exits");
  app.AddVersion("hone-worker " HONE_VERSION);
  // Other users can read a command line, so secrets are passed as names of files.
  app.Add("--key", flags.key_file, "PEM file with the private key of the certificate");
  app.AddConfigFile({{"key", &flags.security.key}, {"token", &flags.security.token}},
                    {"doctor", "exit-with-parent", "list-devices"});
  if (const std::optional<int> code = app.ParseOrExit(argc, argv)) return *code;
  if (flags.program_dir.empty()) flags.program_dir = hone::ProgramDir();
  if (flags.state_dir.empty()) flags.state_dir = DefaultStateDir();
  // This comes before other threads exist, because it would not restrict them.
  if (const absl::Status used = UseCluster(flags.cluster); !used.ok()) {
    return Fail(used, kUsageExitCode);
  }
  if (flags.list_devices) return PrintDevices(flags.program_dir);
  if (flags.doctor) return PrintDoctor(flags);
  if (flags.server.empty()) {
    fprintf(stderr, "hone-worker: --server is required; hone-worker --help lists all options\n");
    return kUsageExitCode;
  }
  if (!flags.key_file.empty()) flags.security.key = flags.key_file;
  if (!flags.security.token_file.empty()) flags.security.token.clear();

  // From here on, messages are logged to standard error, except those about a wrong configuration.
  if (absl::Status log = hone::SetUpLog("hone-worker", flags.log_format, flags.log_level);
      !log.ok()) {
    return Fail(log, kUsageExitCode);
  }
#ifdef HONE_STATIC
  // A static program must not load the system's modules for looking up names, which need another C
  // library.
  __nss_configure_lookup("hosts", "files dns");
#endif
  hone::rpc::TakeGrpcLog(hone::rpc::GrpcLog::kCaller);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGXFSZ, SIG_IGN);  // exceeding a file size limit is handled like a full disk
  if (flags.exit_with_parent) {
    const pid_t parent = getppid();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent || parent == 1) return 0;
  }
  const sigset_t signals = EndingSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  if (absl::Status worked = Work(flags); !worked.ok()) {
    if (absl::IsInvalidArgument(worked)) return Fail(worked, kUsageExitCode);
    spdlog::error("{}", std::string(worked.message()));
    return kFailed;
  }
  return 0;
}
