#include "worker/sandbox/sandbox.h"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "worker/sandbox/guards.h"

namespace hone::sandbox {
namespace {

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
    "fallocate fsync fdatasync poll ppoll select pselect6 statfs fstatfs "
    // Waiting, and what threads need.
    "futex set_robust_list get_robust_list rseq set_tid_address arch_prctl sched_yield "
    "sched_getaffinity sched_getparam sched_getscheduler sched_get_priority_max "
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

// Neither kernels nor compilers need these.
constexpr absl::string_view kForbidden =
    "socket socketpair connect bind listen accept accept4 sendto sendmsg sendmmsg recvfrom recvmsg "
    "execve execveat fork vfork ptrace process_vm_readv process_vm_writev pidfd_open pidfd_getfd "
    "pidfd_send_signal tkill rt_sigqueueinfo rt_tgsigqueueinfo chmod chown mount umount2 "
    "pivot_root chroot setns unshare bpf io_uring_setup perf_event_open keyctl add_key userfaultfd "
    "setuid setgid setresuid reboot init_module finit_module kexec_load";

// What drivers need in addition: their devices, temporary files, and programs that they start.
constexpr absl::string_view kOfDrivers =
    "execve fork vfork wait4 waitid pipe pipe2 dup2 dup3 close_range umask rename renameat "
    "renameat2 "
    "unlink unlinkat rmdir mkdir mkdirat link linkat symlink symlinkat msync mlock2 munlockall "
    "preadv pwritev copy_file_range sendfile readahead eventfd2 epoll_create1 epoll_ctl epoll_wait "
    "epoll_pwait timerfd_create timerfd_settime timerfd_gettime getgroups getpgrp getpgid "
    "getresuid getresgid capget sched_getattr "
    "get_mempolicy set_mempolicy mbind sched_setaffinity";

// The second byte of the requests of terminals. Some of them simulate input, with which a program
// can give commands to the shell that started it. No driver uses this byte.
constexpr scmp_datum_t kTerminalByte = 0x54;
// The requests with this byte that drivers may send.
constexpr int kHarmlessRequests[] = {TCGETS, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX};

// Landlock lets a process change the modes and times of files that it may not open, and of files
// that it may only read. Compilers and linkers set those of their outputs, where they have no
// effect, so these calls do nothing and succeed.
constexpr absl::string_view kWithoutEffect = "fchmod";
constexpr absl::string_view kWithoutEffectInDrivers = "chmod fchmodat utimensat";

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
    // For the threads that exist, too.
    seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_TSYNC, 1);
    const int code = seccomp_load(context_.get());
    if (code == 0) return absl::OkStatus();
    return absl::UnavailableError(ErrnoStatus(-code, "seccomp: load the filter").message());
  }

 private:
  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int code_ = 0;  // of the first rule that was refused
};

// Threads exist already, so that none can be started: pthread_create fails.
void AddRulesOfKernels(bool writer, uint32_t forbidden, Filter& filter) {
  filter.Rule(kForbidden, forbidden);
  filter.Rule("rename renameat renameat2 unlink unlinkat", writer ? SCMP_ACT_ALLOW : forbidden);
  const auto self = static_cast<scmp_datum_t>(getpid());
  filter.Rule("kill tgkill", forbidden, {SCMP_A0(SCMP_CMP_NE, self)});
  filter.Rule("clone", forbidden, {SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)});
  // Of the calling thread; not of other processes of this user.
  filter.Rule("sched_setaffinity", SCMP_ACT_ALLOW, {SCMP_A0(SCMP_CMP_EQ, 0)});
  // Counters that were opened before the sandbox may be switched on and off.
  for (const scmp_datum_t request : {scmp_datum_t{FIONREAD}, scmp_datum_t{PERF_EVENT_IOC_ENABLE},
                                     scmp_datum_t{PERF_EVENT_IOC_DISABLE}}) {
    filter.Rule("ioctl", SCMP_ACT_ALLOW, {SCMP_A1(SCMP_CMP_EQ, request)});
  }
}

void AddRulesOfDrivers(Filter& filter) {
  filter.Rule(kOfDrivers, SCMP_ACT_ALLOW);
  filter.Rule(kWithoutEffectInDrivers, SCMP_ACT_ERRNO(0));
  constexpr scmp_datum_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                          CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID |
                                          CLONE_NEWNET;
  filter.Rule("clone", SCMP_ACT_ALLOW, {SCMP_A0(SCMP_CMP_MASKED_EQ, kNewNamespaces, 0)});
  // The kernel ignores the upper half of a request, and comparisons of filters do not, so that each
  // rule looks at bits: a request is allowed if one bit of its byte differs.
  constexpr int kByte = 8;
  for (int bit = kByte; bit < 2 * kByte; ++bit) {
    const scmp_datum_t mask = scmp_datum_t{1} << bit;
    filter.Rule("ioctl", SCMP_ACT_ALLOW,
                {SCMP_A1(SCMP_CMP_MASKED_EQ, mask, ~(kTerminalByte << kByte) & mask)});
  }
  for (const int request : kHarmlessRequests) {
    filter.Rule("ioctl", SCMP_ACT_ALLOW,
                {SCMP_A1(SCMP_CMP_MASKED_EQ, UINT32_MAX, static_cast<scmp_datum_t>(request))});
  }
}

absl::Status FilterSystemCalls(const SandboxOptions& options) {
  Filter filter;
  if (!filter.made()) return absl::ResourceExhaustedError("seccomp: no memory for the filter");
  filter.Rule(kAllowed, SCMP_ACT_ALLOW);
  filter.Rule(kWithoutEffect, SCMP_ACT_ERRNO(0));
  switch (options.code) {
    case Code::kKernel:
      AddRulesOfKernels(/*writer=*/!options.writable.empty(), SCMP_ACT_TRAP, filter);
      break;
    case Code::kCompiler:
      // LLVM handles the signal of a trap itself, so that the process would go on.
      AddRulesOfKernels(/*writer=*/!options.writable.empty(), SCMP_ACT_KILL_PROCESS, filter);
      filter.Rule("umask", SCMP_ACT_ALLOW);  // read for the modes of files
      break;
    case Code::kDriver:
      AddRulesOfDrivers(filter);
      break;
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

// Counts the threads of all processes of this user that are visible here.
int64_t TasksOfUser() {
  int64_t tasks = 0;
  const uid_t user = getuid();
  std::error_code error;
  for (const auto& process : std::filesystem::directory_iterator("/proc", error)) {
    int64_t number = 0;
    struct stat status = {};
    if (!absl::SimpleAtoi(process.path().filename().string(), &number) ||
        stat(process.path().c_str(), &status) != 0 || status.st_uid != user) {
      continue;
    }
    std::error_code ended;
    for (const auto& task : std::filesystem::directory_iterator(process.path() / "task", ended)) {
      static_cast<void>(task);
      ++tasks;
    }
  }
  return tasks;
}

void LimitTasks(int64_t more) {
  rlimit before;
  if (getrlimit(RLIMIT_NPROC, &before) != 0) return;
  rlimit now = before;
  now.rlim_cur = std::min(static_cast<rlim_t>(TasksOfUser() + more), before.rlim_max);
  setrlimit(RLIMIT_NPROC, &now);
  // Processes in other containers count, too, but are not visible here. If there are too many, the
  // limit would forbid every process.
  const pid_t child = fork();
  if (child == 0) _exit(0);
  if (child > 0) {
    waitpid(child, nullptr, 0);
  } else {
    setrlimit(RLIMIT_NPROC, &before);
  }
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
  setpgid(0, 0);
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
  // At once: the group of this process is killed when this process ends.
  if (child > 0) setpgid(child, child);
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

absl::Status EnterSandbox(const SandboxOptions& options) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return ErrnoStatus(errno, "set no_new_privs");
  on_forbidden = options.forbidden;
  struct sigaction action = {};
  action.sa_sigaction = OnForbidden;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSYS, &action, nullptr);
  if (!options.may_leave_files_unguarded || FileGuardVersion() > 0) {
    HONE_RETURN_IF_ERROR(GuardFiles(options.readable, options.writable, options.devices));
  }
  if (options.start_threads != nullptr) options.start_threads();
  const absl::Status filters = CheckSystemCallFilters();
  if (filters.ok()) return FilterSystemCalls(options);
  return options.may_be_unconfined ? absl::OkStatus() : filters;
}

void LimitProcess(const ProcessLimits& limits) {
  const auto limit = [](__rlimit_resource resource, int64_t value) {
    rlimit current;
    if (getrlimit(resource, &current) != 0) return;
    current.rlim_max = std::min(static_cast<rlim_t>(value), current.rlim_max);
    current.rlim_cur = current.rlim_max;
    setrlimit(resource, &current);
  };
#if defined(__SANITIZE_ADDRESS__)
  const bool shadow_memory = true;  // the sanitizer reserves terabytes of addresses
#else
  const bool shadow_memory = false;
#endif
  if (limits.memory_bytes > 0 && !shadow_memory) {
    limit(limits.private_memory ? RLIMIT_DATA : RLIMIT_AS, limits.memory_bytes);
  }
  if (limits.file_bytes > 0) {
    signal(SIGXFSZ, SIG_IGN);  // the write fails instead
    limit(RLIMIT_FSIZE, limits.file_bytes);
  }
  // Not every system allows this; then the kernel's default applies.
  if (FILE* const score = fopen("/proc/self/oom_score_adj", "we"); score != nullptr) {
    fputs("1000", score);
    fclose(score);
  }
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, limits.open_files);
  if (limits.more_tasks > 0) LimitTasks(limits.more_tasks);
}

}  // namespace hone::sandbox
