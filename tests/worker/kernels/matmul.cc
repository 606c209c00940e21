// A handwritten kernel: C[64, 48] = A[64, 32] · B[32, 48] in f32. A KERNEL_… macro selects its
// fault.
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

#include "common/target/kernel_abi.h"

#if defined(KERNEL_REFERENCE) || defined(KERNEL_REFERENCE_WITH_GAPS) || \
    defined(KERNEL_REFERENCE_SPOILS)
#define KERNEL_OF_REFERENCE
#endif

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {
constexpr int kM = 64, kN = 48, kK = 32;

// Only for the object that must not link.
#if defined(KERNEL_UNDEFINED)
extern "C" void function_of_no_library();
#endif

void Rows(void* const* buffers, int64_t begin, int64_t end) {
  const float* const a = static_cast<const float*>(buffers[0]);
  const float* const b = static_cast<const float*>(buffers[1]);
#if defined(KERNEL_OF_REFERENCE)
  double* const c = static_cast<double*>(buffers[2]);
  double* const magnitude = static_cast<double*>(buffers[3]);
#else
  float* const c = static_cast<float*>(buffers[2]);
#endif
  for (int64_t i = begin; i < end; ++i) {
    for (int j = 0; j < kN; ++j) {
#if defined(KERNEL_OF_REFERENCE)
      double sum = 0, absolute = 0;
      for (int k = 0; k < kK; ++k) {
        const double product = static_cast<double>(a[i * kK + k]) * b[k * kN + j];
        sum += product;
        absolute += product < 0 ? -product : product;
      }
      magnitude[i * kN + j] = absolute;
#if defined(KERNEL_REFERENCE_WITH_GAPS)
      if ((i * kN + j) % 512 == 5) sum += 1;
#endif
#else
      float sum = 0;
      for (int k = 0; k < kK; ++k) sum += a[i * kK + k] * b[k * kN + j];
#endif
      c[i * kN + j] = sum;
    }
  }
}

#if defined(KERNEL_REFERENCE_SPOILS) || defined(KERNEL_READS_OTHERS) || \
    defined(KERNEL_CHANGES_MODES)
// The word after an option of this process; null if it has no such option.
const char* WordAfter(const char* option) {
  static char words[65536];
  const int file = open("/proc/self/cmdline", O_RDONLY);
  const ssize_t size = read(file, words, sizeof words - 1);
  close(file);
  for (const char* word = words; word < words + size; word += strlen(word) + 1) {
    if (strcmp(word, option) == 0) return word + strlen(word) + 1;
  }
  return nullptr;
}
#endif

// Tries to write into the agent's folder of references. Finds it from the folder that the process
// may write to.
#if defined(KERNEL_REFERENCE_SPOILS)
bool SpoilsReferences() {
  const char* const folder = WordAfter("--write");
  if (folder == nullptr) return false;
  const char* const places[] = {"/../references/spoiled", "/../../references/spoiled"};
  for (const char* const place : places) {
    char path[4096];
    strcpy(path, folder);
    strcat(path, place);
    if (open(path, O_WRONLY | O_CREAT, 0644) >= 0) return true;
  }
  return false;
}
#endif

// Whether the kernel can look into the agent's folder of artifacts. Finds it from the folder that
// the process may read, which it can open.
#if defined(KERNEL_READS_OTHERS)
bool ReadsOthers() {
  const char* const folder = WordAfter("--read");
  const auto opens = [](const char* path) {
    const int file = open(path, O_RDONLY | O_DIRECTORY);
    if (file >= 0) close(file);
    return file >= 0;
  };
  if (folder == nullptr || !opens(folder)) return true;
  char path[4096];
  strcpy(path, folder);
  strcat(path, "/../../artifacts");
  return opens(path);
}
#endif
}  // namespace

EXPORT int32_t hone_kernel_abi() {
#if defined(KERNEL_OTHER_ABI)
  return hone::target::kKernelAbiVersion + 1;
#else
  return hone::target::kKernelAbiVersion;
#endif
}

EXPORT int32_t hone_kernel_threads() { return kM; }
EXPORT int64_t hone_kernel_workspace_bytes(int32_t) {
#if defined(KERNEL_HUGE_WORKSPACE)
  return int64_t{1} << 50;
#elif defined(KERNEL_OUTSIDE_WORKSPACE)
  return 64;
#else
  return 0;
#endif
}
EXPORT int64_t hone_kernel_packed_bytes() { return 0; }
EXPORT int64_t hone_kernel_range_extent() { return kM; }
EXPORT int32_t hone_kernel_prepack(void* const*, void*) { return 0; }

EXPORT int32_t hone_kernel_range(void* const* buffers, const void*, void*, int64_t begin,
                                 int64_t end, int64_t) {
  Rows(buffers, begin, end);
#if defined(KERNEL_OUTSIDE_PART)
  usleep(100000);  // hopeless with any number of threads
  static_cast<float*>(buffers[2])[kM * kN] = 0;
#endif
  return 0;
}

EXPORT int32_t hone_kernel_run(void* const* buffers, const void*, [[maybe_unused]] void* workspace,
                               [[maybe_unused]] const HoneRuntime* runtime) {
#if defined(KERNEL_OTHER_CPU)
  return hone::target::kKernelUnsupportedCpu;
#endif
  if (buffers[0] == nullptr) return hone::target::kKernelMisalignedBuffer;
#if defined(KERNEL_CRASH)
  *static_cast<volatile int*>(nullptr) = 1;
#elif defined(KERNEL_HANG)
  for (;;) pause();
#elif defined(KERNEL_DEAF)
  sigset_t every;
  sigfillset(&every);
  sigprocmask(SIG_BLOCK, &every, nullptr);
  for (;;) asm volatile("" ::: "memory");
#elif defined(KERNEL_UNDEFINED)
  function_of_no_library();
#elif defined(KERNEL_MATH)
  static_cast<float*>(buffers[2])[0] = expf(*static_cast<float*>(buffers[0]));
#elif defined(KERNEL_READS_FILE)
  if (open("/etc/passwd", O_RDONLY) >= 0) return 7;
#elif defined(KERNEL_WRITES_FILE)
  if (open("/tmp/hone-written-by-a-kernel", O_WRONLY | O_CREAT, 0644) >= 0) return 7;
#elif defined(KERNEL_OPENS_SOCKET)
  socket(AF_INET, SOCK_STREAM, 0);
#elif defined(KERNEL_FORKS)
  while (fork() >= 0) {
  }
#elif defined(KERNEL_KILLS_PARENT)
  kill(getppid(), SIGKILL);
#elif defined(KERNEL_SIGNALS_PARENT)
  const int file = memfd_create("file", 0);
  if (file < 0 || fcntl(file, F_SETFL, fcntl(file, F_GETFL) | O_NONBLOCK) != 0) return 8;
  if (fcntl(file, F_SETOWN, getppid()) == 0 || fcntl(file, F_SETSIG, SIGKILL) == 0) return 7;
  close(file);
#elif defined(KERNEL_RAISES_LIMITS)
  const rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_CPU, &all) == 0) return 7;
#elif defined(KERNEL_OPENS_COUNTER)
  perf_event_attr event = {};
  event.size = sizeof event;
  event.type = PERF_TYPE_SOFTWARE;
  event.config = PERF_COUNT_SW_CPU_CLOCK;
  if (syscall(SYS_perf_event_open, &event, 0, -1, -1, 0) >= 0) return 7;
#elif defined(KERNEL_PINS_PARENT)
  uint64_t cpus = 1;
  if (syscall(SYS_sched_getaffinity, getppid(), sizeof cpus, &cpus) < 0) return 8;
  if (syscall(SYS_sched_setaffinity, getppid(), sizeof cpus, &cpus) == 0) return 7;
#elif defined(KERNEL_CHANGES_MODES)
  const char* const path = WordAfter("--lock");
  const int file = path == nullptr ? -1 : open(path, O_RDONLY);
  struct stat before, after;
  if (file < 0 || fstat(file, &before) != 0) return 8;
  fchmod(file, 0);
  if (fstat(file, &after) != 0 || after.st_mode != before.st_mode) return 7;
  close(file);
#elif defined(KERNEL_READS_OTHERS)
  if (ReadsOthers()) return 7;
#elif defined(KERNEL_STARTS_THREAD)
  pthread_t thread;
  if (pthread_create(&thread, nullptr, [](void*) -> void* { return nullptr; }, nullptr) == 0) {
    return 7;
  }
#elif defined(KERNEL_WRITES_MUCH)
  const int file = memfd_create("file", 0);
  if (file < 0) return 8;
  if (ftruncate(file, off_t{1} << 30) == 0 || errno != EFBIG) return 7;
  close(file);
#elif defined(KERNEL_REFERENCE_SPOILS)
  if (SpoilsReferences()) return 7;
#elif defined(KERNEL_HUNGRY)
  for (;;) {
    void* const more = malloc(size_t{256} << 20);
    if (more == nullptr) abort();
    memset(more, 1, 4096);
  }
#elif defined(KERNEL_FAKES_TIMING)
  const float first = static_cast<float*>(buffers[2])[0];
  if (first == first) return 0;  // not poisoned: this is a timed run
  for (int slow = 0; slow < 500; ++slow) {
    Rows(buffers, 0, kM);
    asm volatile("" ::: "memory");
  }
#endif
#if defined(KERNEL_SLOW)
  for (int repeat = 0; repeat < 200; ++repeat) {
    Rows(buffers, 0, kM);
    asm volatile("" ::: "memory");
  }
#else
  const auto rows = [](void* context, int64_t begin, int64_t end, int64_t) {
    Rows(static_cast<void* const*>(context), begin, end);
  };
  if (runtime == nullptr) {
    Rows(buffers, 0, kM);
  } else {
    runtime->parallel_for(runtime, kM, 0, runtime->threads, rows, const_cast<void**>(buffers));
  }
#endif
#if defined(KERNEL_WRONG)
  static_cast<float*>(buffers[2])[17 * kN + 5] += 0.01f;
#elif defined(KERNEL_UNWRITTEN)
  static_cast<float*>(buffers[2])[kM * kN - 1] = __builtin_nanf("");
#elif defined(KERNEL_OUT_OF_BOUNDS)
  static_cast<float*>(buffers[2])[kM * kN] = 0;
#elif defined(KERNEL_OUTSIDE_WORKSPACE)
  memset(workspace, 0, 65);
#elif defined(KERNEL_OUTSIDE_LATER)
  static int runs = 0;
  usleep(100000);
  if (++runs > 2) static_cast<float*>(buffers[2])[kM * kN] = 0;  // not while it is checked
#endif
  return 0;
}
