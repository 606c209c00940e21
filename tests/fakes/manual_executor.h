#ifndef HONE_TESTS_FAKES_MANUAL_EXECUTOR_H_
#define HONE_TESTS_FAKES_MANUAL_EXECUTOR_H_

#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "server/job/actor/executor.h"

namespace hone::job {

// Queues work until RunAll is called, and then runs it in order in the caller's thread.
// Thread-safe.
class ManualExecutor final : public Executor {
 public:
  void Schedule(absl::AnyInvocable<void() &&> work) override {
    absl::MutexLock lock(&mutex_);
    queue_.push_back(std::move(work));
  }
  // Runs all work, including work that is scheduled meanwhile. Returns whether there was any.
  bool RunAll() {
    bool any = false;
    while (absl::AnyInvocable<void() &&> work = Next()) {
      std::move(work)();
      any = true;
    }
    return any;
  }

 private:
  absl::AnyInvocable<void() &&> Next() {
    absl::MutexLock lock(&mutex_);
    if (queue_.empty()) return nullptr;
    absl::AnyInvocable<void() &&> work = std::move(queue_.front());
    queue_.pop_front();
    return work;
  }

  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void() &&>> queue_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::job

#endif  // HONE_TESTS_FAKES_MANUAL_EXECUTOR_H_
