#include "worker/sandbox/guards.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::sandbox {
namespace {

// From the kernel's linux/landlock.h, because distributions carry different versions of this
// header.
struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};
struct __attribute__((packed)) PathBeneath {
  uint64_t allowed_access;
  int32_t parent_fd;
};
constexpr long kCreateRuleset = 444, kAddRule = 445, kRestrictSelf = 446;
constexpr uint32_t kVersionFlag = 1, kPathBeneathRule = 1;
constexpr uint64_t kExecute = 1 << 0, kWriteFile = 1 << 1, kReadFile = 1 << 2, kReadDir = 1 << 3;
constexpr uint64_t kFirstVersion = (1 << 13) - 1;  // thirteen access rights, through MAKE_SYM
constexpr uint64_t kRefer = 1 << 13, kTruncate = 1 << 14, kIoctlDevice = 1 << 15;
constexpr uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate | kIoctlDevice;
constexpr uint64_t kScopeSockets = 1 << 0, kScopeSignals = 1 << 1;

uint64_t HandledAccess(long version) {
  uint64_t access = kFirstVersion;
  if (version >= 2) access |= kRefer;
  if (version >= 3) access |= kTruncate;
  if (version >= 5) access |= kIoctlDevice;
  return access;
}

absl::Status Allow(int ruleset, const std::string& path, uint64_t access) {
  const int fd = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, absl::StrCat("open ", path));
  struct stat status = {};
  fstat(fd, &status);
  if (!S_ISDIR(status.st_mode)) access &= kOfFiles;
  const PathBeneath rule = {.allowed_access = access, .parent_fd = fd};
  const long added = syscall(kAddRule, ruleset, kPathBeneathRule, &rule, 0);
  const int error = errno;
  close(fd);
  return added == 0 ? absl::OkStatus() : ErrnoStatus(error, absl::StrCat("allow ", path));
}

absl::Status Fill(int ruleset, uint64_t handled, const std::vector<std::string>& readable,
                  const std::vector<std::string>& writable,
                  const std::vector<std::string>& devices) {
  constexpr uint64_t kRead = kReadFile | kReadDir;
  for (const char* path :
       {"/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/proc/self", "/proc/cpuinfo",
        "/proc/meminfo", "/proc/stat", "/sys/devices", "/dev/null", "/dev/zero"}) {
    if (access(path, F_OK) == 0) HONE_RETURN_IF_ERROR(Allow(ruleset, path, kRead | kExecute));
  }
  for (const std::string& path : readable) HONE_RETURN_IF_ERROR(Allow(ruleset, path, kRead));
  for (const std::string& path : writable) {
    HONE_RETURN_IF_ERROR(Allow(ruleset, path, handled & ~kExecute & ~kIoctlDevice));
  }
  for (const std::string& path : devices) {
    HONE_RETURN_IF_ERROR(Allow(ruleset, path, handled & (kRead | kWriteFile | kIoctlDevice)));
  }
  if (syscall(kRestrictSelf, ruleset, 0) != 0) return ErrnoStatus(errno, "guard files");
  return absl::OkStatus();
}

}  // namespace

long FileGuardVersion() { return std::max(0L, syscall(kCreateRuleset, nullptr, 0, kVersionFlag)); }

absl::Status CheckFileGuard() {
  if (FileGuardVersion() > 0) return absl::OkStatus();
  return absl::UnavailableError(
      "this system has no Landlock (it is older than Linux 5.13, or Landlock is switched off), so "
      "code of clients could read and write all files of this user; if this user owns nothing else "
      "and you trust whoever tunes on the server, start hone-worker with --allow-unguarded-files");
}

bool HasSystemCallFilters() {
  // A system with filters reads the filter and finds a bad address.
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0, 0) != 0 && errno == EFAULT;
}

absl::Status CheckSystemCallFilters() {
  if (HasSystemCallFilters()) return absl::OkStatus();
  return absl::UnavailableError(
      "this system cannot filter system calls (seccomp), so code of clients could do everything "
      "that this user can; if you trust whoever tunes on the server, start hone-worker with "
      "--unconfined");
}

absl::Status GuardFiles(const std::vector<std::string>& readable,
                        const std::vector<std::string>& writable,
                        const std::vector<std::string>& devices) {
  HONE_RETURN_IF_ERROR(CheckFileGuard());
  const long version = FileGuardVersion();
  RulesetAttributes attributes = {.handled_access_fs = HandledAccess(version)};
  size_t size = sizeof(attributes.handled_access_fs);
  if (version >= 6) {
    attributes.scoped = kScopeSockets | kScopeSignals;
    size = sizeof(attributes);
  }
  const int ruleset = static_cast<int>(syscall(kCreateRuleset, &attributes, size, 0));
  if (ruleset < 0) return ErrnoStatus(errno, "make a Landlock ruleset");
  const absl::Status filled =
      Fill(ruleset, attributes.handled_access_fs, readable, writable, devices);
  close(ruleset);
  return filled;
}

}  // namespace hone::sandbox
