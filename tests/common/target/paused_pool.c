// The pool of threads, which stops at the places where threads could miss each other. The tests
// decide how long.
#define _GNU_SOURCE
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kOff, kArmed, kReached, kReleased };
_Atomic int paused_sleep;   // a worker before it sleeps
_Atomic int paused_wake;   // a caller that is about to wake sleepers waits for that worker
_Atomic int paused_worker;  // a worker after it has looked whether it must end
static _Atomic int again;   // the worker stops a second time
static _Atomic int sleeps_after_wake;

static void Pass(_Atomic int* place) {
  int armed = kArmed;
  if (!atomic_compare_exchange_strong(place, &armed, kReached)) return;
  for (int i = 0; i < 5000 && *place != kReleased; ++i) usleep(1000);
  *place = atomic_exchange(&again, 0) ? kArmed : kOff;
}

// The worker returns once, computes the loop, and is about to sleep again.
static void BeforeClear(void) {
  int armed = kArmed;
  if (!atomic_compare_exchange_strong(&paused_wake, &armed, kOff)) return;
  again = 1;
  paused_sleep = kReleased;
  for (int i = 0; i < 5000 && paused_sleep != kReached; ++i) usleep(1000);
  sleeps_after_wake = 1;
}

static int64_t AfterLoad(const char* function, const char* object, int64_t value) {
  if (strcmp(function, "Work") == 0 && strcmp(object, "&p->stopping") == 0 && value == 0)
    Pass(&paused_worker);
  return value;
}

static long Futex(long number, void* word, int operation, uint32_t value, void* time, void* other,
                  uint32_t classes) {
  const int command = operation & FUTEX_CMD_MASK;
  const int of_workers = classes != 1;  // which is that of callers
  if (of_workers && command == FUTEX_WAIT_BITSET) Pass(&paused_sleep);
  const long result = syscall(number, word, operation, value, time, other, classes);
  if (!of_workers || command != FUTEX_WAKE_BITSET) return result;
  if (sleeps_after_wake) paused_sleep = kReleased;
  sleeps_after_wake = 0;
  if (paused_worker == kReached) paused_worker = kReleased;
  return result;
}

#define SIX(number, a, b, c, d, e, f, name, ...) name
#define syscall(...) SIX(__VA_ARGS__, Futex, , , syscall, , , )(__VA_ARGS__)
#undef atomic_load
#define atomic_load(object) \
  AfterLoad(__func__, #object, (int64_t)atomic_load_explicit(object, memory_order_seq_cst))
#undef atomic_fetch_and
#define atomic_fetch_and(object, value) \
  (BeforeClear(), atomic_fetch_and_explicit(object, value, memory_order_seq_cst))

#include "common/target/thread_pool.c"
