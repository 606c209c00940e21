#include "worker/runner/sandbox.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "worker/runner/file_guard.h"

namespace hone::runner {
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
  filter.Rule("ioctl", SCMP_ACT_ALLOW, {SCMP_A1(SCMP_CMP_EQ, FIONREAD)});
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

}  // namespace

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

}  // namespace hone::runner
