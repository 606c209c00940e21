// A preloaded library that shifts a program's wall clock by the number of nanoseconds in the file
// CLOCK_SHIFT_FILE (8 bytes, native order), as if the machine's clock had been set. Absolute waits
// are shifted back for the kernel; waits in progress are not changed by a jump.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace {

constexpr int64_t kSecond = 1'000'000'000;

const volatile int64_t* Map() {
  const char* const path = getenv("CLOCK_SHIFT_FILE");
  static const int64_t none = 0;
  const int fd = path == nullptr ? -1 : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return &none;
  void* const mapped = mmap(nullptr, sizeof(int64_t), PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  return mapped == MAP_FAILED ? &none : static_cast<const volatile int64_t*>(mapped);
}

int64_t Shift() {
  static const volatile int64_t* const shift = Map();
  return *shift;
}

template <typename Function>
Function Next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

void Move(timespec& time, int64_t nanoseconds) {
  int64_t ns = time.tv_nsec + nanoseconds % kSecond;
  time.tv_sec += nanoseconds / kSecond;
  if (ns < 0) {
    ns += kSecond;
    --time.tv_sec;
  } else if (ns >= kSecond) {
    ns -= kSecond;
    ++time.tv_sec;
  }
  time.tv_nsec = ns;
}

}  // namespace

extern "C" {

int clock_gettime(clockid_t clock, timespec* time) {
  static const auto next = Next<int (*)(clockid_t, timespec*)>("clock_gettime");
  const int result = next(clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
    Move(*time, Shift());
  }
  return result;
}

int gettimeofday(timeval* time, void*) {
  timespec now;
  if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t* out) {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  static const auto next =
      Next<int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*)>("pthread_cond_timedwait");
  timespec moved = *until;
  Move(moved, -Shift());
  return next(condition, mutex, &moved);
}

// Abseil uses the system call for waits.
long syscall(long number, ...) {
  static const auto next = Next<long (*)(long, ...)>("syscall");
  va_list list;
  va_start(list, number);
  long arguments[6];
  for (long& argument : arguments) argument = va_arg(list, long);
  va_end(list);
  timespec moved;
  if (number == SYS_futex && (arguments[1] & FUTEX_CLOCK_REALTIME) != 0 && arguments[3] != 0) {
    moved = *reinterpret_cast<const timespec*>(arguments[3]);
    Move(moved, -Shift());
    if (moved.tv_sec < 0) moved = {};
    arguments[3] = reinterpret_cast<long>(&moved);
  }
  return next(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
              arguments[5]);
}

}  // extern "C"
