#include "worker/runner/sandbox.h"

#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "absl/strings/str_cat.h"
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

// By name, because not every architecture has all of them.
constexpr const char* kAllowed[] = {
    // Memory, and files that are open or that Landlock allows.
    "brk", "mmap", "munmap", "mprotect", "mremap", "madvise", "mincore", "mlock", "munlock", "read",
    "readv", "pread64", "write", "writev", "pwrite64", "close", "lseek", "open", "openat", "stat",
    "lstat", "fstat", "newfstatat", "statx", "access", "faccessat", "faccessat2", "readlink",
    "readlinkat", "getdents64", "getcwd", "fcntl", "flock", "dup", "memfd_create", "ftruncate",
    "fallocate", "fsync", "fdatasync", "fchmod", "poll", "ppoll", "select", "pselect6", "statfs",
    "fstatfs",
    // Threads and waiting.
    "futex", "set_robust_list", "get_robust_list", "rseq", "set_tid_address", "arch_prctl",
    "sched_yield", "sched_getaffinity", "sched_setaffinity", "sched_getparam", "sched_getscheduler",
    "sched_get_priority_max", "sched_get_priority_min", "membarrier", "getcpu", "gettid", "getpid",
    "getppid", "exit", "exit_group", "restart_syscall", "pause",
    // Time, and its own signals.
    "clock_gettime", "clock_getres", "clock_nanosleep", "nanosleep", "gettimeofday", "time",
    "setitimer", "getitimer", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigtimedwait",
    "rt_sigpending", "sigaltstack",
    // Information about the process and the machine.
    "getuid", "geteuid", "getgid", "getegid", "uname", "sysinfo", "getrlimit", "getrusage", "times",
    "getrandom"};

// Only where writing files is allowed.
constexpr const char* kAllowedToWriters[] = {"rename",   "renameat", "renameat2", "unlink",
                                             "unlinkat", "mkdir",    "mkdirat"};

// No kernel needs these.
constexpr const char* kForbidden[] = {"socket",
                                      "socketpair",
                                      "connect",
                                      "bind",
                                      "listen",
                                      "accept",
                                      "accept4",
                                      "sendto",
                                      "sendmsg",
                                      "sendmmsg",
                                      "recvfrom",
                                      "recvmsg",
                                      "execve",
                                      "execveat",
                                      "fork",
                                      "vfork",
                                      "ptrace",
                                      "process_vm_readv",
                                      "process_vm_writev",
                                      "pidfd_open",
                                      "pidfd_getfd",
                                      "pidfd_send_signal",
                                      "kill",
                                      "tkill",
                                      "tgkill",
                                      "rt_sigqueueinfo",
                                      "rt_tgsigqueueinfo",
                                      "unlink",
                                      "unlinkat",
                                      "rename",
                                      "renameat",
                                      "renameat2",
                                      "chmod",
                                      "chown",
                                      "mount",
                                      "umount2",
                                      "pivot_root",
                                      "chroot",
                                      "setns",
                                      "unshare",
                                      "bpf",
                                      "io_uring_setup",
                                      "perf_event_open",
                                      "keyctl",
                                      "add_key",
                                      "userfaultfd",
                                      "setuid",
                                      "setgid",
                                      "setresuid",
                                      "reboot",
                                      "init_module",
                                      "finit_module",
                                      "kexec_load"};

absl::Status Failed(int code, const char* what) {
  return ErrnoStatus(-code, absl::StrCat("seccomp: ", what));
}

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), seccomp_release) {}

  bool made() const { return context_ != nullptr; }
  // Names that are unknown here belong to other architectures.
  void Rule(const char* name, uint32_t action) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) Note(seccomp_rule_add(context_.get(), action, number, 0));
  }
  void RuleIf(const char* name, uint32_t action, scmp_arg_cmp condition) {
    const int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) Note(seccomp_rule_add_array(context_.get(), action, number, 1, &condition));
  }
  absl::Status Load() {
    if (code_ != 0) return Failed(code_, "make the filter");
    // no_new_privs is set already.
    seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_NNP, 0);
    if (const int code = seccomp_load(context_.get()); code != 0) {
      return absl::UnavailableError(Failed(code, "load the filter").message());
    }
    return absl::OkStatus();
  }

 private:
  void Note(int code) {
    if (code != 0 && code_ == 0) code_ = code;
  }

  std::unique_ptr<void, void (*)(scmp_filter_ctx)> context_;
  int code_ = 0;
};

absl::Status FilterSystemCalls(bool writer) {
  Filter filter;
  if (!filter.made()) return absl::ResourceExhaustedError("seccomp: no memory for the filter");
  for (const char* name : kAllowed) filter.Rule(name, SCMP_ACT_ALLOW);
  if (writer) {
    for (const char* name : kAllowedToWriters) filter.Rule(name, SCMP_ACT_ALLOW);
  }
  const auto self = static_cast<scmp_datum_t>(getpid());
  filter.RuleIf("kill", SCMP_ACT_ALLOW, SCMP_A0(SCMP_CMP_EQ, self));
  filter.RuleIf("tgkill", SCMP_ACT_ALLOW, SCMP_A0(SCMP_CMP_EQ, self));
  filter.RuleIf("clone", SCMP_ACT_ALLOW, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, CLONE_THREAD));
  filter.RuleIf("clone", SCMP_ACT_TRAP, SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  filter.Rule("clone3", SCMP_ACT_ERRNO(ENOSYS));
  // prctl may name threads and the allocator's memory. Limits may be read, not raised.
  filter.RuleIf("prctl", SCMP_ACT_ALLOW, SCMP_A0(SCMP_CMP_EQ, PR_SET_NAME));
  filter.RuleIf("prlimit64", SCMP_ACT_ALLOW, SCMP_A2(SCMP_CMP_EQ, 0));
  filter.RuleIf("ioctl", SCMP_ACT_ALLOW, SCMP_A1(SCMP_CMP_EQ, FIONREAD));
  for (const char* name : kForbidden) {
    const absl::string_view word = name;
    bool allowed = word == "kill" || word == "tgkill";
    for (const char* other : kAllowedToWriters) allowed |= writer && word == other;
    if (!allowed) filter.Rule(name, SCMP_ACT_TRAP);
  }
  filter.RuleIf("kill", SCMP_ACT_TRAP, SCMP_A0(SCMP_CMP_NE, self));
  filter.RuleIf("tgkill", SCMP_ACT_TRAP, SCMP_A0(SCMP_CMP_NE, self));
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
  HONE_RETURN_IF_ERROR(GuardFiles(options.readable, options.writable));
  return FilterSystemCalls(!options.writable.empty());
}

bool GuardsFiles() { return LandlockVersion() > 0; }

}  // namespace hone::runner
