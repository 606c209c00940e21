#include "worker/sandbox/driver_access.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::sandbox {
namespace {

// Folders with descriptions of drivers and devices.
constexpr const char* kReadable[] = {"/etc/OpenCL",   "/etc/nvidia",   "/etc/localtime",
                                     "/opt",          "/proc/driver",  "/proc/devices",
                                     "/proc/modules", "/proc/version", "/proc/filesystems",
                                     "/proc/sys/vm",  "/sys"};
// Files of GPUs: NVIDIA's, those of the kernel's graphics drivers, AMD's, ARM's, Qualcomm's, and
// the memory that they share.
constexpr const char* kDevicePrefixes[] = {"nvidia", "dri", "kfd",      "mali",
                                           "kgsl",   "ion", "dma_heap", "udmabuf"};

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

// Returns the path. Only this process may use the folder.
absl::StatusOr<std::string> MakeScratchFolder() {
  std::error_code no_folder;
  std::string parent = std::filesystem::temp_directory_path(no_folder);
  if (no_folder) parent = "/tmp";
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

}  // namespace

absl::Status PrepareForDriver(SandboxOptions& sandbox) {
  HONE_ASSIGN_OR_RETURN(const std::string scratch, MakeScratchFolder());
  for (const char* const variable : {"HOME", "TMPDIR", "XDG_CACHE_HOME", "POCL_CACHE_DIR"}) {
    setenv(variable, scratch.c_str(), 1);
  }
  // Each kernel is compiled only once, so a cache would only fill the folder.
  setenv("POCL_KERNEL_CACHE", "0", 1);
  setenv("CUDA_CACHE_DISABLE", "1", 1);
  // Makes PoCL pin its threads, unless the user has set this.
  setenv("POCL_AFFINITY", "1", 0);
  sandbox.code = Code::kDriver;
  sandbox.writable.push_back(scratch);
  for (const char* const path : kReadable) {
    if (access(path, F_OK) == 0) sandbox.readable.emplace_back(path);
  }
  // Drivers may be in the folders that the user names for libraries.
  const char* const libraries = getenv("LD_LIBRARY_PATH");
  for (const absl::string_view path : absl::StrSplit(libraries == nullptr ? "" : libraries, ':')) {
    const std::string folder(path);
    if (absl::StartsWith(folder, "/") && access(folder.c_str(), F_OK) == 0) {
      sandbox.readable.push_back(folder);
    }
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename();
    for (const char* const prefix : kDevicePrefixes) {
      if (absl::StartsWith(name, prefix)) sandbox.devices.push_back(entry.path());
    }
  }
  return absl::OkStatus();
}

}  // namespace hone::sandbox
