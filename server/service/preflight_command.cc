#include "server/service/preflight_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "common/base/command_line.h"
#include "server/job/actor/compiler_environment.h"
#include "server/job/actor/exceptions.h"
#include "server/job/actor/job_codec.h"
#include "server/job/search/first_work.h"

namespace hone::service {
namespace {

constexpr char kName[] = "preflight";
constexpr int kFailure = 1;

constexpr rlim_t kMostMemory = rlim_t{4} << 30;  // address space; a hundred times the usual size
constexpr rlim_t kMostSeconds = 120;             // processor time

void Limit(int resource, rlim_t most) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0) return;
  limit.rlim_cur = std::min(limit.rlim_cur, most);
  setrlimit(resource, &limit);  // the check also works without the limit
}

void LimitThisProcess() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  Limit(RLIMIT_AS, kMostMemory);  // sanitizers reserve more than that
#endif
  Limit(RLIMIT_CPU, kMostSeconds);
  Limit(RLIMIT_CORE, 0);
  // If memory runs out, the kernel should kill this process and not the server.
  if (const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC); file >= 0) {
    if (write(file, "1000", 4) < 0) errno = 0;
    close(file);
  }
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t size = read(fd, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer, static_cast<size_t>(size));
  }
}

// Writes a line without buffering, so that a crash loses nothing.
void Say(absl::string_view what, absl::string_view text) {
  const std::string line = absl::StrCat(what, " ", text, "\n");
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) errno = 0;
}

}  // namespace

std::vector<std::string> PreflightCommand() {
  // The path of the running program, even if its file was replaced meanwhile.
  return {"/proc/self/exe", kName};
}

std::optional<int> RunPreflightCommand(int argc, char** argv) {
  if (argc != 2 || absl::string_view(argv[1]) != kName) return std::nullopt;
  LimitThisProcess();
  const absl::StatusOr<job::JobSpec> spec = job::DecodeSpec(ReadAll(STDIN_FILENO));
  if (!spec.ok()) return kUsageExitCode;
  const absl::Status thrown = job::CatchExceptions([&] {
    const auto environment = job::MakeCompilerEnvironment(/*threads=*/1);
    job::DoFirstWork(*environment, *spec, [](absl::string_view step) { Say("step", step); });
  });
  if (!thrown.ok()) Say("error", thrown.message());
  _exit(thrown.ok() ? 0 : kFailure);  // destructors are not needed
}

}  // namespace hone::service
