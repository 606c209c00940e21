// Reports Abseil's locks to ThreadSanitizer. The distribution builds Abseil without the sanitizer,
// which therefore does not see when a Mutex is locked, and does not know that accesses under the
// Mutex are ordered. With the preset tsan, the linker (--wrap, cmake/hone.cmake) redirects our
// calls to these functions, which report the lock and call the real functions. Reads in the
// conditions of waiting threads are not checked, because Abseil evaluates them in the thread that
// unlocks.

#include <sanitizer/tsan_interface.h>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);

namespace {

// A call into Abseil for an object, which releases the thread's earlier writes, acquires the writes
// that others have released, or both.
enum class Order { kRelease, kAcquire, kBoth };

class Call {
 public:
  Call(const void* object, Order order) : object_(const_cast<void*>(object)), order_(order) {
    if (order_ != Order::kAcquire) __tsan_release(object_);
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  }
  ~Call() {
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    if (order_ != Order::kRelease) __tsan_acquire(object_);
  }

 private:
  void* object_;
  Order order_;
};

}  // namespace

// SYMBOL is the name in the Itanium C++ ABI, without _Z.
#define HONE_WRAP(RESULT, SYMBOL, ORDER, PARAMETERS, ARGUMENTS) \
  extern "C" RESULT __real__Z##SYMBOL PARAMETERS;               \
  extern "C" RESULT __wrap__Z##SYMBOL PARAMETERS {              \
    const Call call(object, Order::ORDER);                      \
    return __real__Z##SYMBOL ARGUMENTS;                         \
  }

using absl::Condition;
using absl::Mutex;
using absl::Notification;

HONE_WRAP(void, N4absl7debian35Mutex4LockEv, kAcquire, (Mutex * object), (object))
HONE_WRAP(void, N4absl7debian35Mutex6UnlockEv, kRelease, (Mutex * object), (object))
HONE_WRAP(void, N4absl7debian35Mutex10ReaderLockEv, kAcquire, (Mutex * object), (object))
HONE_WRAP(void, N4absl7debian35Mutex12ReaderUnlockEv, kRelease, (Mutex * object), (object))
HONE_WRAP(void, N4absl7debian35Mutex5AwaitERKNS0_9ConditionE, kBoth,
          (Mutex * object, const Condition& condition), (object, condition))
HONE_WRAP(bool, N4absl7debian35Mutex17AwaitWithDeadlineERKNS0_9ConditionENS0_4TimeE, kBoth,
          (Mutex * object, const Condition& condition, absl::Time deadline),
          (object, condition, deadline))
HONE_WRAP(void, N4absl7debian312Notification6NotifyEv, kRelease, (Notification * object), (object))
HONE_WRAP(void, NK4absl7debian312Notification19WaitForNotificationEv, kAcquire,
          (const Notification* object), (object))
HONE_WRAP(bool, NK4absl7debian312Notification30WaitForNotificationWithTimeoutENS0_8DurationE,
          kAcquire, (const Notification* object, absl::Duration timeout), (object, timeout))
HONE_WRAP(bool, N4absl7debian315BlockingCounter14DecrementCountEv, kRelease,
          (absl::BlockingCounter * object), (object))
HONE_WRAP(void, N4absl7debian315BlockingCounter4WaitEv, kAcquire, (absl::BlockingCounter * object),
          (object))
