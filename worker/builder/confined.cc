#include "worker/builder/confined.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/host_lock.h"
#include "common/base/status_macros.h"
#include "common/target/host.h"
#include "worker/builder/nvrtc.h"

namespace hone::builder {
namespace {

// The answer of the child: the status's code as a byte, and the result or the message.
std::string EncodeAnswer(const absl::StatusOr<std::string>& result) {
  const std::string code(1, static_cast<char>(result.status().raw_code()));
  return code + (result.ok() ? *result : std::string(result.status().message()));
}

absl::StatusOr<std::string> DecodeAnswer(std::string answer) {
  const auto code = static_cast<absl::StatusCode>(answer[0]);
  answer.erase(0, 1);
  if (code != absl::StatusCode::kOk) return absl::Status(code, answer);
  return answer;
}

absl::Status Died(int wait_status) {
  if (!WIFSIGNALED(wait_status)) {
    return absl::AbortedError(
        absl::StrCat("the code generator ended with exit status ", WEXITSTATUS(wait_status)));
  }
  const int signal_number = WTERMSIG(wait_status);
  return absl::AbortedError(absl::StrCat(
      "the code generator ended with signal ", signal_number, " (", strsignal(signal_number), ")",
      signal_number == SIGSYS ? ", after a system call which its sandbox forbids" : ""));
}

}  // namespace

absl::Status Confine(const std::string& lock_path, sandbox::SandboxOptions sandbox) {
  sandbox.code = sandbox::Code::kCompiler;
  const std::vector<std::string> lock_files =
      lock_path.empty() ? std::vector<std::string>{} : HostLock::Files(lock_path);
  for (const std::string& file : lock_files) {
    HONE_RETURN_IF_ERROR(FileLock::Open(file).status());  // makes it
    sandbox.readable.push_back(file);
  }
  for (std::string& folder : NvrtcFolders()) sandbox.readable.push_back(std::move(folder));
  target::DetectHost();  // for references of GPUs; kept
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  return sandbox::EnterSandbox(sandbox);
#else
  return absl::OkStatus();  // the runtimes of sanitizers use forbidden system calls
#endif
}

absl::StatusOr<std::string> RunConfined(
    const std::string& lock_path,
    absl::FunctionRef<absl::StatusOr<std::string>(const std::string& folder)> work) {
  std::error_code no_folder;
  std::string folder = std::filesystem::temp_directory_path(no_folder);
  if (no_folder) folder = "/tmp";
  folder += "/hone-builder-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) return ErrnoStatus(errno, "make a temporary folder");
  const absl::Cleanup remove = [&] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  };
  MemoryFile answer;
  if (answer.fd() < 0) return ErrnoStatus(errno, "make a file in memory");
  std::fflush(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child < 0) return ErrnoStatus(errno, "start a process");
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    // A user has started this program, so it does what this system allows.
    const absl::Status confined = Confine(
        lock_path,
        {.writable = {folder}, .may_be_unconfined = true, .may_leave_files_unguarded = true});
    const bool written = answer.Write(EncodeAnswer(confined.ok() ? work(folder) : confined)).ok();
    _exit(written ? 0 : 1);
  }
  int wait_status = 0;
  while (waitpid(child, &wait_status, 0) < 0 && errno == EINTR) {
  }
  if (wait_status != 0) return Died(wait_status);
  HONE_ASSIGN_OR_RETURN(std::string text, answer.Read());
  if (text.empty()) return absl::AbortedError("the code generator gave no answer");
  return DecodeAnswer(std::move(text));
}

}  // namespace hone::builder
