#include "worker/runner/scratch_folder.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace hone::runner {
namespace {

// Waits until no process has the writing end of the pipe open, then removes the folder.
[[noreturn]] void RemoveAtEndOf(int pipe, const std::string& folder) {
  setsid();
  prctl(PR_SET_NAME, "hone-scratch");
  for (const int signal_number : {SIGHUP, SIGINT, SIGTERM}) signal(signal_number, SIG_IGN);
  // Closes all other descriptors. Otherwise, readers of the parent's output would wait until this
  // process ends, too.
  if (pipe != STDIN_FILENO) dup2(pipe, STDIN_FILENO);
  close_range(STDOUT_FILENO, ~0U, 0);
  char byte;
  while (read(STDIN_FILENO, &byte, 1) < 0 && errno == EINTR) {
  }
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
  _exit(0);
}

}  // namespace

absl::StatusOr<std::string> MakeScratchFolder(const std::string& parent) {
  std::string folder = absl::StrCat(parent, "/hone-runner-XXXXXX");
  if (mkdtemp(folder.data()) == nullptr) {
    return ErrnoStatus(errno, absl::StrCat("make a scratch folder in ", parent));
  }
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    const int error = errno;
    rmdir(folder.c_str());
    return ErrnoStatus(error, "make a pipe");
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[1]);
    RemoveAtEndOf(ends[0], folder);
  }
  const int error = errno;
  close(ends[0]);
  // The writing end stays open until this process ends.
  if (child > 0) return folder;
  close(ends[1]);
  rmdir(folder.c_str());
  return ErrnoStatus(error, "start a process");
}

}  // namespace hone::runner
