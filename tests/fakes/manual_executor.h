#ifndef HONE_TESTS_FAKES_MANUAL_EXECUTOR_H_
#define HONE_TESTS_FAKES_MANUAL_EXECUTOR_H_

#include <deque>
#include <utility>

#include "server/task/executor.h"

namespace hone::task {

// Runs what is scheduled when it is told to, in order, in the caller's thread.
class ManualExecutor final : public Executor {
 public:
  void Schedule(absl::AnyInvocable<void() &&> work) override { queue_.push_back(std::move(work)); }
  // Until nothing is left, also of what is scheduled meanwhile. Whether there was anything.
  bool RunAll() {
    bool any = false;
    while (!queue_.empty()) {
      absl::AnyInvocable<void()&&> work = std::move(queue_.front());
      queue_.pop_front();
      std::move(work)();
      any = true;
    }
    return any;
  }

 private:
  std::deque<absl::AnyInvocable<void() &&>> queue_;
};

}  // namespace hone::task

#endif  // HONE_TESTS_FAKES_MANUAL_EXECUTOR_H_
