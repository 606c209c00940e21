#define _GNU_SOURCE
#include "common/target/thread_pool.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kPathBytes = 4096 };

// Reads the beginning of a file as text. Returns false if that is not possible.
static bool ReadText(const char* path, char* text, size_t bytes) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  size_t length = 0;
  for (;;) {
    const ssize_t got = read(file, text + length, bytes - 1 - length);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    length += (size_t)got;
  }
  close(file);
  text[length] = '\0';
  return length > 0;
}

// Reads a positive number, and moves `text` behind it. Returns 0 if there is none ("max", "-1").
static double Number(const char** text) {
  const char* at = *text;
  while (*at == ' ') ++at;
  double number = 0;
  for (; *at >= '0' && *at <= '9'; ++at) number = 10 * number + (*at - '0');
  *text = at;
  return number;
}

// The quota of a control group's folder, in CPUs; 0 if it has none.
static double QuotaOfFolder(const char* folder, size_t length) {
  char path[kPathBytes], text[128];
  const char* at = text;
  snprintf(path, sizeof path, "%.*s/cpu.max", (int)length, folder);  // "150000 100000"
  if (ReadText(path, text, sizeof text)) {
    const double quota = Number(&at), period = Number(&at);
    return period > 0 ? quota / period : 0;
  }
  snprintf(path, sizeof path, "%.*s/cpu.cfs_quota_us", (int)length, folder);  // version 1
  if (!ReadText(path, text, sizeof text)) return 0;
  const double quota = Number(&at);
  snprintf(path, sizeof path, "%.*s/cpu.cfs_period_us", (int)length, folder);
  if (!ReadText(path, text, sizeof text)) return 0;
  at = text;
  const double period = Number(&at);
  return period > 0 ? quota / period : 0;
}

// The least quota of a group and of those that contain it; 0 if none has one. `mount`: the folder
// of the outermost group. In a container, `group` may be a path that only the host has.
static double QuotaOfGroup(const char* mount, const char* group) {
  char folder[kPathBytes];
  const int length = snprintf(folder, sizeof folder, "%s%s", mount, group);
  if (length < 0 || length >= (int)sizeof folder) return 0;
  const size_t shortest = strlen(mount);
  size_t end = (size_t)length;
  double least = 0;
  for (;;) {
    const double quota = QuotaOfFolder(folder, end);
    if (quota > 0 && (least == 0 || quota < least)) least = quota;
    if (end <= shortest) return least;
    do --end;
    while (end > shortest && folder[end] != '/');
  }
}

// Whether a list such as "cpu,cpuacct" contains "cpu".
static bool HasCpu(const char* list, const char* end) {
  for (const char* at = list; at + 3 <= end; ++at) {
    if ((at == list || at[-1] == ',') && memcmp(at, "cpu", 3) == 0 &&
        (at + 3 == end || at[3] == ',')) {
      return true;
    }
  }
  return false;
}

double hone_cpu_quota(const char* root) {
  char path[kPathBytes], groups[kPathBytes];
  snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
  if (!ReadText(path, groups, sizeof groups)) strcpy(groups, "0::/");
  double least = 0;
  // Lines of "NUMBER:CONTROLLERS:GROUP"; version 2 has no controllers.
  for (char* line = groups; line != NULL && *line != '\0';) {
    char* const end = strchr(line, '\n');
    if (end != NULL) *end = '\0';
    char* const list = strchr(line, ':');
    char* const list_end = list == NULL ? NULL : strchr(list + 1, ':');
    if (list_end != NULL) {
      const char* const group = strcmp(list_end + 1, "/") == 0 ? "" : list_end + 1;
      if (list + 1 == list_end || HasCpu(list + 1, list_end)) {
        // Version 2 is mounted at the first place, version 1 at a place with the names of its
        // controllers.
        const int length = (int)(list_end - list - 1);
        snprintf(path, sizeof path, "%s/sys/fs/cgroup%s%.*s", root, length > 0 ? "/" : "", length,
                 list + 1);
        const double quota = QuotaOfGroup(path, group);
        if (quota > 0 && (least == 0 || quota < least)) least = quota;
      }
    }
    line = end == NULL ? NULL : end + 1;
  }
  return least;
}

static double quota;
static pthread_once_t quota_once = PTHREAD_ONCE_INIT;
static void ReadQuota(void) { quota = hone_cpu_quota(""); }

int32_t hone_usable_cpus(void) {
  int32_t cpus = 1;
  unsigned long mask[8192 / (8 * sizeof(unsigned long))] = {0};
  if (syscall(SYS_sched_getaffinity, 0, sizeof mask, mask) > 0) {
    cpus = 0;
    for (size_t i = 0; i < sizeof mask / sizeof *mask; ++i) {
      for (unsigned long word = mask[i]; word != 0; word &= word - 1) ++cpus;
    }
  }
  // Once: a sandbox may forbid it later.
  pthread_once(&quota_once, ReadQuota);
  if (quota > 0 && quota < cpus) {
    cpus = (int32_t)quota;
    if (cpus < quota) ++cpus;
  }
  return cpus < 1 ? 1 : cpus;
}

int32_t hone_threads_default(void) {
  // "4", or "4,2" with a number for loops inside loops.
  const char* const text = getenv("OMP_NUM_THREADS");
  if (text != NULL) {
    const char* at = text;
    const double threads = Number(&at);
    if (threads >= 1 && threads <= 1024) return (int32_t)threads;
  }
  return hone_usable_cpus();
}

typedef void (*Body)(void* context, int64_t begin, int64_t end, int64_t thread);

enum {
  kLoops = 7,         // that the pool helps at the same time; their states share a cache line
  kMaxThreads = 1024  // of a loop
};

// About how long a thread spins before it sleeps, in microseconds. Longer than the gaps between the
// kernels of a network, and much shorter than the time slice that spinning costs if another program
// needs the core.
static const int64_t kSpin = 50;
// A share takes about this long at most, so that others can take over the rest.
static const int64_t kLongShare = 100;
// Work that takes less than this is not divided further.
static const int64_t kShortShare = 8;

// The units of one thread's part of a loop that are not claimed yet, and the loop's tag in the high
// half. A claim fails if the tag is another one. So a thread that was descheduled for a while cannot
// claim something of a later loop by mistake, and nobody needs to wait for it.
typedef struct Part {
  _Alignas(64) _Atomic uint64_t left;
} Part;

// A loop that runs. Its memory is reused for later loops, and never freed.
typedef struct Loop {
  // Written before the loop is opened. Valid for a thread that has claimed a unit until it reports
  // the unit as finished.
  _Alignas(64) Body body;
  void* context;
  int64_t extent;
  int64_t unit;   // iterations of a unit; the last one may have fewer
  int64_t units;
  int32_t parts;  // 1: all threads claim single units of the same part
  uint32_t tag;
  _Alignas(64) _Atomic int64_t unfinished;  // units
  _Atomic uint32_t waiting;                 // 1: the caller sleeps until all units are finished
  _Alignas(64) _Atomic uint32_t taken;      // by a caller
  Part part[kMaxThreads];
} Loop;

// What a child process of fork must not inherit. Zeros are a pool without threads.
typedef struct Pool {
  // What the threads look at while they wait, in one cache line.
  _Alignas(64) _Atomic uint64_t open[kLoops];  // the tag in the high half, `parts`, and the threads
  _Atomic uint32_t news;                       // changes when a loop is opened
  _Atomic uint32_t asleep;                     // classes of threads that sleep until then, see ClassOf
  _Alignas(64) _Atomic int32_t workers;        // that have been started
  _Atomic uint32_t growing;                    // 1: a thread starts workers
  _Atomic uint32_t started;                    // workers that run
  _Atomic uint32_t full;                       // 1: no further workers can be started
  _Atomic uint32_t stopping;
  pid_t process;  // if the memory is inherited by children; otherwise 0
  pthread_t threads[kMaxThreads];
  Loop loops[kLoops];
} Pool;

static Pool* pool;
static int32_t usable_cpus;
static pthread_once_t pool_once = PTHREAD_ONCE_INIT;
static _Thread_local bool in_loop;  // the calling thread computes a share

static void MakePool(void) {
  usable_cpus = hone_usable_cpus();
  void* const memory =
      mmap(NULL, sizeof(Pool), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  pool = memory;
  // Linux 4.14. The memory is then filled with zeros in a child.
  if (madvise(memory, sizeof(Pool), MADV_WIPEONFORK) != 0) pool->process = getpid();
}

// Returns null if there is no memory.
static Pool* GetPool(void) {
  pthread_once(&pool_once, MakePool);
  if (pool != NULL && pool->process != 0 && pool->process != getpid()) {
    // The only thread of a child process.
    void* const memory = mmap(pool, sizeof(Pool), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (memory == MAP_FAILED) return NULL;
    pool->process = getpid();
  }
  return pool;
}

// Time in a unit of the processor's choice, and about how many of these are a microsecond.
static inline int64_t Ticks(void) {
#if defined(__x86_64__)
  return (int64_t)__builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  int64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
#else
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
#endif
}

static inline int64_t TicksOf(int64_t microseconds) {
#if defined(__x86_64__)
  return microseconds * 2500;  // 2 to 4 GHz
#elif defined(__aarch64__)
  int64_t frequency;
  __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
  return microseconds * frequency / 1000000;
#else
  return microseconds * 1000;
#endif
}

static inline void Pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  __asm__ volatile("yield" ::: "memory");
#endif
}

// Sleepers are woken by classes, because a futex has 32 of them: one per number up to 30, and one
// for all others.
static uint32_t ClassOf(int32_t number) { return UINT32_C(1) << (number < 31 ? number : 31); }
// The classes of the numbers from 1 to threads − 1.
static uint32_t ClassesBelow(int32_t threads) {
  return threads > 31 ? ~UINT32_C(1) : (UINT32_C(1) << threads) - 2;
}

static void Sleep(_Atomic uint32_t* word, uint32_t value, uint32_t classes) {
  syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, NULL, NULL, classes);
}

static void Wake(_Atomic uint32_t* word, uint32_t classes) {
  syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, kMaxThreads, NULL, NULL, classes);
}

// The first unit of a part.
static int64_t FirstUnit(const Loop* loop, int32_t part) {
  return loop->units / loop->parts * part + loop->units % loop->parts * part / loop->parts;
}

// How many of the units that are left a thread claims at a time. `pace`: ticks per unit; 0: unknown.
static int64_t ShareOf(int64_t left, int64_t pace) {
  if (left == 1) return 1;
  if (pace == 0) return left > 8 ? left / 8 : 1;
  const int64_t short_share = TicksOf(kShortShare) / pace;
  if (left <= short_share) return left;
  const int64_t long_share = TicksOf(kLongShare) / pace;
  const int64_t half = left / 2;
  const int64_t share = half < long_share ? half : long_share;
  return share > 1 ? share : 1;
}

// Computes shares of a part until all of its units are claimed. Returns the number of units.
static int64_t RunPart(Loop* loop, uint32_t tag, bool shared, int32_t number, int32_t part,
                       int64_t* pace) {
  int64_t done = 0;
  _Atomic uint64_t* const place = &loop->part[part].left;
  uint64_t word = atomic_load_explicit(place, memory_order_acquire);
  int64_t start = 0;
  while (word >> 32 == tag && (uint32_t)word != 0) {
    const int64_t left = (uint32_t)word;
    const int64_t share = shared ? 1 : ShareOf(left, *pace);
    if (!atomic_compare_exchange_weak_explicit(place, &word, word - (uint64_t)share,
                                               memory_order_acq_rel, memory_order_acquire)) {
      continue;
    }
    // From here on the loop cannot end, so its members are those of this tag.
    const int64_t end_of_part = shared ? loop->units : FirstUnit(loop, part + 1);
    const int64_t begin = (end_of_part - left) * loop->unit;
    int64_t end = (end_of_part - left + share) * loop->unit;
    if (end > loop->extent) end = loop->extent;
    const bool timed = !shared && share < left;
    if (timed && start == 0) start = Ticks();
    loop->body(loop->context, begin, end, number);
    done += share;
    if (timed) {
      const int64_t now = Ticks();
      const int64_t each = (now - start) / share;
      *pace = each > 0 ? each : 1;
      start = now;
    }
    word = atomic_load_explicit(place, memory_order_acquire);
  }
  return done;
}

// Computes shares of a loop until all units are claimed.
static void Help(Loop* loop, uint32_t tag, int32_t parts, int32_t number) {
  int64_t done = 0, pace = 0;
  in_loop = true;
  for (int32_t i = 0; i < parts; ++i) {
    const int32_t part = number + i < parts ? number + i : (number + i) % parts;
    done += RunPart(loop, tag, parts == 1, number, part, &pace);
  }
  in_loop = false;
  // Afterwards the loop may end, unless units of others are unfinished.
  if (done > 0 && atomic_fetch_sub(&loop->unfinished, done) == done &&
      atomic_load(&loop->waiting) != 0) {
    atomic_store(&loop->waiting, 0);
    Wake(&loop->waiting, 1);
  }
}

// How long threads spin: not at all if they keep each other from the cores.
static int64_t SpinOf(const Pool* p) {
  return atomic_load_explicit(&p->workers, memory_order_relaxed) < usable_cpus ? TicksOf(kSpin) : 0;
}

static uint64_t OpenWord(uint32_t tag, int32_t parts, int32_t threads) {
  return (uint64_t)tag << 32 | (uint64_t)parts << 16 | (uint64_t)threads;
}

static void* Work(void* argument) {
  Pool* const p = pool;
  const int32_t number = (int32_t)(intptr_t)argument;
  in_loop = false;  // The first access may allocate the variable, which must not happen in dlclose.
  uint64_t seen[kLoops] = {0};
  atomic_fetch_add(&p->started, 1);
  for (;;) {
    // Before `stopping`, so that Stop changes `news` after this if the thread does not see it.
    const uint32_t news = atomic_load(&p->news);
    if (atomic_load(&p->stopping) != 0) return NULL;
    bool helped = false;
    for (int32_t l = 0; l < kLoops; ++l) {
      const uint64_t open = atomic_load_explicit(&p->open[l], memory_order_acquire);
      if (open == seen[l]) continue;
      seen[l] = open;
      const int32_t parts = (int32_t)(open >> 16 & 0xffff), threads = (int32_t)(open & 0xffff);
      if (number >= threads) continue;
      Help(&p->loops[l], (uint32_t)(open >> 32), parts, number);
      helped = true;
    }
    if (helped) continue;
    const int64_t start = Ticks(), spin = SpinOf(p);
    while (atomic_load_explicit(&p->news, memory_order_acquire) == news && Ticks() - start < spin) {
      Pause();
    }
    if (atomic_load_explicit(&p->news, memory_order_acquire) != news) continue;
    atomic_fetch_or(&p->asleep, ClassOf(number));
    // Whoever opens a loop changes `news` first and looks for sleepers then.
    Sleep(&p->news, news, ClassOf(number));
  }
}

// Starts workers until there are `wanted`.
static void Grow(Pool* p, int32_t wanted) {
  if (atomic_load(&p->full) != 0 || atomic_exchange(&p->growing, 1) != 0) return;
  // Signals are for the program's own threads, except those that an instruction causes.
  sigset_t blocked, before;
  sigfillset(&blocked);
  static const int kCaused[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT, SIGSYS, SIGPROF};
  for (size_t i = 0; i < sizeof kCaused / sizeof *kCaused; ++i) sigdelset(&blocked, kCaused[i]);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  int32_t workers = atomic_load(&p->workers);
  while (workers < wanted && atomic_load(&p->stopping) == 0) {
    if (pthread_create(&p->threads[workers], NULL, Work, (void*)(intptr_t)(workers + 1)) != 0) {
      atomic_store(&p->full, 1);
      break;
    }
    atomic_store(&p->workers, ++workers);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  // See Work: a thread that has not begun yet could not be ended by dlclose.
  while (atomic_load(&p->started) < (uint32_t)workers) sched_yield();
  atomic_store(&p->growing, 0);
}

// Ends the threads, because the code that they run is unloaded, or the process ends.
__attribute__((destructor)) static void Stop(void) {
  Pool* const p = pool;
  if (p == NULL || (p->process != 0 && p->process != getpid())) return;
  atomic_store(&p->stopping, 1);
  while (atomic_load(&p->growing) != 0) sched_yield();
  atomic_fetch_add(&p->news, 1);
  Wake(&p->news, ~UINT32_C(0));
  const int32_t workers = atomic_load(&p->workers);
  for (int32_t w = 0; w < workers; ++w) {
    if (!pthread_equal(p->threads[w], pthread_self())) pthread_join(p->threads[w], NULL);
  }
  atomic_store(&p->workers, 0);
}

// Sleeps until all units are finished, after spinning for a while.
static void WaitFor(const Pool* p, Loop* loop) {
  const int64_t start = Ticks(), spin = SpinOf(p);
  while (atomic_load_explicit(&loop->unfinished, memory_order_acquire) != 0) {
    if (Ticks() - start < spin) {
      Pause();
      continue;
    }
    atomic_store(&loop->waiting, 1);
    if (atomic_load(&loop->unfinished) != 0) Sleep(&loop->waiting, 1, 1);
  }
}

static Loop* TakeLoop(Pool* p, int32_t* place) {
  for (int32_t l = 0; l < kLoops; ++l) {
    Loop* const loop = &p->loops[l];
    *place = l;
    if (atomic_load_explicit(&loop->taken, memory_order_relaxed) == 0 &&
        atomic_exchange_explicit(&loop->taken, 1, memory_order_acquire) == 0) {
      return loop;
    }
  }
  return NULL;
}

static void ParallelFor(const HoneRuntime* runtime, int64_t extent, int64_t chunk, int32_t threads,
                        Body body, void* context) {
  (void)runtime;
  if (extent <= 0) return;
  // Units are single iterations or chunks, unless there are too many for 32 bits.
  const int64_t least = extent / INT32_MAX + 1;
  const int64_t unit = chunk > least ? chunk : least;
  const int64_t units = (extent - 1) / unit + 1;
  if (threads > kMaxThreads) threads = kMaxThreads;
  if (threads > units) threads = (int32_t)units;
  Pool* const p = threads <= 1 || in_loop ? NULL : GetPool();
  if (p != NULL && atomic_load_explicit(&p->workers, memory_order_relaxed) < threads - 1) {
    Grow(p, threads - 1);
  }
  int32_t place = 0;
  Loop* const loop = p == NULL ? NULL : TakeLoop(p, &place);
  if (loop == NULL) {
    const bool outer = in_loop;
    in_loop = true;
    body(context, 0, extent, 0);
    in_loop = outer;
    return;
  }
  const int32_t parts = chunk > 0 ? 1 : threads;
  const uint32_t tag = loop->tag == UINT32_MAX ? 1 : loop->tag + 1;
  loop->body = body;
  loop->context = context;
  loop->extent = extent;
  loop->unit = unit;
  loop->units = units;
  loop->parts = parts;
  loop->tag = tag;
  atomic_store_explicit(&loop->unfinished, units, memory_order_relaxed);
  for (int32_t part = 0; part < parts; ++part) {
    const int64_t count = FirstUnit(loop, part + 1) - FirstUnit(loop, part);
    atomic_store_explicit(&loop->part[part].left, (uint64_t)tag << 32 | (uint64_t)count,
                          memory_order_release);
  }
  atomic_store_explicit(&p->open[place], OpenWord(tag, parts, threads), memory_order_release);
  atomic_fetch_add(&p->news, 1);
  const uint32_t wake = atomic_load(&p->asleep) & ClassesBelow(threads);
  if (wake != 0) {
    atomic_fetch_and(&p->asleep, ~wake);
    // A thread that has seen the loop already, and has just joined the class again, must not sleep
    // now: no later loop would wake it.
    atomic_fetch_add(&p->news, 1);
    Wake(&p->news, wake);
  }
  Help(loop, tag, parts, 0);
  WaitFor(p, loop);
  atomic_store_explicit(&loop->taken, 0, memory_order_release);
}

HoneRuntime hone_threads(int32_t threads) {
  const HoneRuntime runtime = {ParallelFor, threads > 0 ? threads : hone_threads_default()};
  return runtime;
}

int32_t hone_threads_start(int32_t threads) {
  if (threads > kMaxThreads) threads = kMaxThreads;
  Pool* const p = threads <= 1 ? NULL : GetPool();
  if (p == NULL) return 1;
  while (atomic_load(&p->workers) < threads - 1 && atomic_load(&p->full) == 0 &&
         atomic_load(&p->stopping) == 0) {
    Grow(p, threads - 1);
  }
  const int32_t workers = atomic_load(&p->workers);
  return workers + 1 < threads ? workers + 1 : threads;
}
