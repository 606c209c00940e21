#include "worker/runner/sandbox.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"

namespace hone::runner {
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

// Restricts this thread and the threads that it starts later. They can open only the system's
// libraries, /proc/self, /sys/devices and `readable` for reading, only files in `writable` for
// writing, and device files and folders in `devices` for any access. Where the kernel supports it,
// they also cannot signal other processes. Does nothing before Linux 5.13, which has no Landlock
// (kernel documentation, "Landlock: unprivileged access control"). REQUIRES no_new_privs. NotFound:
// a path of the lists cannot be opened.
absl::Status GuardFiles(const std::vector<std::string>& readable,
                        const std::vector<std::string>& writable,
                        const std::vector<std::string>& devices) {
  const long version = FileGuardVersion();
  if (version <= 0) return absl::OkStatus();
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

void (*on_forbidden)(int) = nullptr;

void OnForbidden(int, siginfo_t* info, void*) {
  if (on_forbidden != nullptr) on_forbidden(info->si_syscall);
  _exit(0);
}

// System calls are listed by name, because not every architecture has all of them.
constexpr absl::string_view kAllowed =
    // Memory, and files that are open already or that Landlock allows.
    "brk mmap munmap mprotect mremap madvise mincore mlock munlock read readv pread64 write writev "
    "pwrite64 close lseek open openat stat lstat fstat newfstatat statx access faccessat "
    "faccessat2 readlink readlinkat getdents64 getcwd flock dup memfd_create ftruncate "
    "fallocate fsync fdatasync fchmod poll ppoll select pselect6 statfs fstatfs "
    // Threads and waiting.
    "futex set_robust_list get_robust_list rseq set_tid_address arch_prctl sched_yield "
    "sched_getaffinity sched_setaffinity sched_getparam sched_getscheduler sched_get_priority_max "
    "sched_get_priority_min membarrier getcpu gettid getpid getppid exit exit_group "
    "restart_syscall pause "
    // Time, and its own signals.
    "clock_gettime clock_getres clock_nanosleep nanosleep gettimeofday time setitimer getitimer "
    "rt_sigaction rt_sigprocmask rt_sigreturn rt_sigtimedwait rt_sigpending sigaltstack "
    // Information about the process and the machine.
    "getuid geteuid getgid getegid uname sysinfo getrlimit getrusage times getrandom";

// The commands of fcntl that are allowed. Others could make the system send signals to any process
// of this user (F_SETOWN, F_SETSIG).
constexpr int kFileCommands[] = {
    F_GETFD, F_SETFD,  F_GETFL,     F_SETFL,     F_DUPFD,      F_DUPFD_CLOEXEC, F_GETLK,
    F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_ADD_SEALS,     F_GET_SEALS};

// No kernel needs these.
constexpr absl::string_view kForbidden =
    "socket socketpair connect bind listen accept accept4 sendto sendmsg sendmmsg recvfrom recvmsg "
    "execve execveat fork vfork ptrace process_vm_readv process_vm_writev pidfd_open pidfd_getfd "
    "pidfd_send_signal tkill rt_sigqueueinfo rt_tgsigqueueinfo chmod chown mount umount2 "
    "pivot_root chroot setns unshare bpf io_uring_setup perf_event_open keyctl add_key userfaultfd "
    "setuid setgid setresuid reboot init_module finit_module kexec_load";

// What drivers need in addition: their devices, temporary files, and programs that they start.
constexpr absl::string_view kOfDrivers =
    "execve fork vfork wait4 waitid pipe pipe2 dup2 dup3 close_range umask chmod fchmod fchmodat "
    "rename renameat renameat2 unlink unlinkat rmdir mkdir mkdirat link linkat symlink symlinkat "
    "utimensat truncate msync mlock2 munlockall preadv pwritev copy_file_range sendfile readahead "
    "eventfd2 epoll_create1 epoll_ctl epoll_wait epoll_pwait timerfd_create timerfd_settime "
    "timerfd_gettime getgroups getpgrp getpgid getresuid getresgid capget sched_getattr "
    "get_mempolicy set_mempolicy mbind";

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release) {}

  bool made() const { return context_ != nullptr; }
  // Adds a rule for each name. Skips unknown names, which belong to other architectures.
  void Rule(absl::string_view names, uint32_t action,
            const std::vector<scmp_arg_cmp>& conditions = {}) {
    for (const absl::string_view name : absl::StrSplit(names, ' ')) {
      const int number = seccomp_syscall_resolve_name(std::string(name).c_str());
      if (number < 0) continue;
      const int code =
          seccomp_rule_add_array(context_.get(), action, number,
                                 static_cast<unsigned>(conditions.size()), conditions.data());
      if (code != 0 && code_ == 0) code_ = code;
    }
  }
  absl::Status Load() {
    if (code_ != 0) return ErrnoStatus(-code_, "seccomp: make the filter");
    // no_new_privs is set already.
    seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_NNP, 0);
    const int code = seccomp_load(context_.get());
    if (code == 0) return absl::OkStatus();
    return absl::UnavailableError(ErrnoStatus(-code, "seccomp: load the filter").message());
  }

 private:
  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int code_ = 0;  // of the first rule that was refused
};

void AddRulesOfKernels(bool writer, Filter& filter) {
  filter.Rule(kForbidden, SCMP_ACT_TRAP);
  filter.Rule("rename renameat renameat2 unlink unlinkat", writer ? SCMP_ACT_ALLOW : SCMP_ACT_TRAP);
  if (writer) filter.Rule("mkdir mkdirat", SCMP_ACT_ALLOW);
  const auto self = static_cast<scmp_datum_t>(getpid());
  filter.Rule("kill tgkill", SCMP_ACT_TRAP, {SCMP_A0(SCMP_CMP_NE, self)});
  filter.Rule("clone", SCMP_ACT_ALLOW, {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD)});
  filter.Rule("clone", SCMP_ACT_TRAP, {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)});
  // Counters that were opened before the sandbox may be switched on and off.
  for (const scmp_datum_t request : {scmp_datum_t{FIONREAD}, scmp_datum_t{PERF_EVENT_IOC_ENABLE},
                                     scmp_datum_t{PERF_EVENT_IOC_DISABLE}}) {
    filter.Rule("ioctl", SCMP_ACT_ALLOW, {SCMP_A1(SCMP_CMP_EQ, request)});
  }
}

void AddRulesOfDrivers(Filter& filter) {
  filter.Rule(kOfDrivers, SCMP_ACT_ALLOW);
  constexpr scmp_datum_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET;
  filter.Rule("clone", SCMP_ACT_ALLOW, {SCMP_A0(SCMP_CMP_MASKED_EQ, kNewNamespaces, 0)});
  // Allows everything except simulating terminal input.
  filter.Rule("ioctl", SCMP_ACT_ALLOW, {SCMP_A1(SCMP_CMP_NE, TIOCSTI)});
}

absl::Status FilterSystemCalls(const SandboxOptions& options) {
  Filter filter;
  if (!filter.made()) return absl::ResourceExhaustedError("seccomp: no memory for the filter");
  filter.Rule(kAllowed, SCMP_ACT_ALLOW);
  if (options.driver) {
    AddRulesOfDrivers(filter);
  } else {
    AddRulesOfKernels(/*writer=*/!options.writable.empty(), filter);
  }
  for (const int command : kFileCommands) {
    filter.Rule("fcntl fcntl64", SCMP_ACT_ALLOW,
                {SCMP_A1(SCMP_CMP_EQ, static_cast<scmp_datum_t>(command))});
  }
  const auto self = static_cast<scmp_datum_t>(getpid());
  filter.Rule("kill tgkill", SCMP_ACT_ALLOW, {SCMP_A0(SCMP_CMP_EQ, self)});
  filter.Rule("clone3", SCMP_ACT_ERRNO(ENOSYS));
  // prctl may name threads and memory of the allocator. Limits may be read but not changed.
  filter.Rule("prctl", SCMP_ACT_ALLOW, {SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME)});
  filter.Rule("prlimit64", SCMP_ACT_ALLOW, {SCMP_A2(SCMP_CMP_EQ, 0)});
  return filter.Load();
}

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

long FileGuardVersion() { return std::max(0L, syscall(kCreateRuleset, nullptr, 0, kVersionFlag)); }

absl::Status EnterSandbox(const SandboxOptions& options) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoStatus(errno, "set no_new_privs");
  on_forbidden = options.forbidden;
  struct sigaction action = {};
  action.sa_sigaction = OnForbidden;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  HONE_RETURN_IF_ERROR(GuardFiles(options.readable, options.writable, options.devices));
  if (!HasSystemCallFilters()) {
    if (options.may_be_unconfined) return absl::OkStatus();
    return absl::UnavailableError(
        "this system cannot filter system calls (seccomp), so a kernel could do everything that "
        "this user can; if you trust whoever tunes on the server, start hone-worker with "
        "--unconfined");
  }
  return FilterSystemCalls(options);
}

bool HasSystemCallFilters() {
  // A system with filters reads the filter and finds a bad address.
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, nullptr, 0, 0) != 0 && errno == EFAULT;
}

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
  sandbox.driver = true;
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

}  // namespace hone::runner
