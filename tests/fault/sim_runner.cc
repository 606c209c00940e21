// Replaces hone-runner: starts the real runner, passes every request on, and puts a simulated
// latency into the answer. The latency depends only on the artifact, so every worker measures the
// same, and the best of a workload is known. Loading, checking, sandbox and limits are real. The
// samples differ from run to run, which identifies each measurement.
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "common/base/digest.h"
#include "common/record/framing.h"
#include "hone/v1/process.pb.h"

namespace {

constexpr double kFastestNs = 1e6;
constexpr double kStep = 1.05;  // ratio of two latencies; far more than the samples vary
constexpr uint64_t kSteps = 48;
constexpr double kSpread = 1e-3;
constexpr int kSamples = 5;
// With each value of this variable, every kernel has another latency.
constexpr char kDraw[] = "HONE_SIMULATED_DRAW";

double LatencyOf(const std::string& artifact_path) {
  std::string name = std::filesystem::path(artifact_path).filename();
  if (const char* const draw = std::getenv(kDraw); draw != nullptr) name += draw;
  return kFastestNs * std::pow(kStep, static_cast<double>(hone::DigestOf(name).low % kSteps));
}

void Simulate(const std::string& artifact_path, hone::v1::MeasureResult& result) {
  static std::random_device device;
  static std::mt19937_64 random((static_cast<uint64_t>(device()) << 32) | device());
  std::uniform_real_distribution<double> apart(1 - kSpread, 1 + kSpread);
  const double latency = LatencyOf(artifact_path);
  result.set_latency_ns(latency);
  result.clear_samples_ns();
  for (int i = 0; i < kSamples; ++i) result.add_samples_ns(latency * apart(random));
  result.set_dispersion(kSpread);
  result.set_reference_drift(1);
  result.clear_stopped_early();
  result.clear_machine();
}

struct Child {
  pid_t pid = -1;
  int input = -1;
  int output = -1;
};

// Uses a single core. The fleet has more machines than this machine may have cores, and its
// kernels would disturb each other.
void TakeOneCore() {
  cpu_set_t may;
  if (sched_getaffinity(0, sizeof(may), &may) != 0) return;
  int skip = static_cast<int>(getpid()) % CPU_COUNT(&may);
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (!CPU_ISSET(core, &may) || skip-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

// The measurements need no quiet machine, so they do not wait for others of this machine: the lock
// is the first folder that the runner reads, which belongs to its worker.
void UseOwnLock(int argc, char** argv) {
  char** const end = argv + argc;
  const auto is = [](const char* word) {
    return [word](const char* argument) { return std::strcmp(argument, word) == 0; };
  };
  char** const lock = std::find_if(argv, end, is("--lock"));
  char** const folder = std::find_if(argv, end, is("--read"));
  if (end - lock > 1 && end - folder > 1) lock[1] = folder[1];
}

Child StartReal(char** argv) {
  int to[2], from[2];
  if (pipe(to) != 0 || pipe(from) != 0) _exit(1);
  Child child{.pid = fork(), .input = to[1], .output = from[0]};
  if (child.pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    TakeOneCore();
    signal(SIGPIPE, SIG_DFL);
    dup2(to[0], STDIN_FILENO);
    dup2(from[1], STDOUT_FILENO);
    for (const int fd : {to[0], to[1], from[0], from[1]}) close(fd);
    execv(REAL_RUNNER, argv);
    _exit(127);
  }
  close(to[0]);
  close(from[1]);
  return child;
}

// Exits in the same way as the real runner.
[[noreturn]] void EndAs(const Child& child) {
  int status = 0;
  waitpid(child.pid, &status, 0);
  if (WIFSIGNALED(status)) {
    signal(WTERMSIG(status), SIG_DFL);
    raise(WTERMSIG(status));
  }
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--measure-peak") == 0) {
    std::puts(R"({"gflops_all_cores": 100, "gflops_one_core": 50, "read_gbps_all_cores": 10,)"
              R"( "steady": true})");
    return 0;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  UseOwnLock(argc, argv);
  if (argc > 1 &&
      (std::strcmp(argv[1], "--list-devices") == 0 || std::strcmp(argv[1], "--describe") == 0)) {
    execv(REAL_RUNNER, argv);
    _exit(127);
  }
  const Child child = StartReal(argv);
  for (;;) {
    const auto message = hone::record::ReadFrame(STDIN_FILENO);
    if (!message.ok()) {
      close(child.input);
      EndAs(child);
    }
    hone::v1::RunRequest request;
    if (!request.ParseFromString(*message)) return 1;
    request.clear_best_latency_ns();  // it is simulated, so the real runner cannot compare with it
    request.mutable_policy()->set_name("screen");  // the fewest samples, which are not used
    request.mutable_policy()->clear_repeats();
    if (!hone::record::WriteFrame(child.input, request.SerializeAsString()).ok()) EndAs(child);
    const auto answer = hone::record::ReadFrame(child.output);
    if (!answer.ok()) EndAs(child);
    hone::v1::RunResponse response;
    if (!response.ParseFromString(*answer)) return 1;
    if (response.result().outcome() == hone::v1::OUTCOME_OK && !request.artifact_path().empty()) {
      Simulate(request.artifact_path(), *response.mutable_result());
    }
    if (!hone::record::WriteFrame(STDOUT_FILENO, response.SerializeAsString()).ok()) return 1;
  }
}
