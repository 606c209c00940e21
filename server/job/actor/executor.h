#ifndef HONE_SERVER_JOB_ACTOR_EXECUTOR_H_
#define HONE_SERVER_JOB_ACTOR_EXECUTOR_H_

#include <deque>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hone::job {

// Runs `work` and catches exceptions. Hone does not throw, but the standard library and other
// libraries do, for example std::bad_alloc. Internal: an exception was thrown; the message contains
// its type and text.
absl::Status CatchExceptions(absl::FunctionRef<void()> work);
// Returns the status of `work`, or, if it throws, that of CatchExceptions, which is also logged.
absl::Status Attempt(absl::FunctionRef<absl::Status()> work);

// Runs functions later, in any thread. Thread-safe.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual void Schedule(absl::AnyInvocable<void() &&> work) = 0;
};

// A fixed number of threads. Their nice value is `nice` above that of threads that answer workers
// and clients.
class ThreadPool final : public Executor {
 public:
  static constexpr int kNice = 4;           // of searches and the models of jobs
  static constexpr int kNiceLearning = 10;  // of work that nobody waits for
  explicit ThreadPool(int threads, int nice = kNice);
  ~ThreadPool() override;
  void Schedule(absl::AnyInvocable<void() &&> work) override;
  // Runs the queued functions, and those that they schedule, and ends the threads, as the
  // destructor does. Functions that are scheduled after that never run. Returns false if some
  // threads still run after `limit`.
  bool Stop(absl::Duration limit = absl::InfiniteDuration());

 private:
  void Work();

  const int nice_;
  absl::Mutex mutex_;
  std::deque<absl::AnyInvocable<void() &&>> queue_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;  // threads
  std::vector<std::thread> threads_;
};

// Runs messages one at a time and in order on an executor, so the state of an actor needs no lock.
// Thread-safe. The strand may be destroyed before its messages have run, so messages must keep
// alive what they use. A message must not throw: the strand would run no other message.
class Strand {
 public:
  explicit Strand(Executor* executor) : executor_(executor), state_(std::make_shared<State>()) {}
  void Post(absl::AnyInvocable<void() &&> message);

 private:
  struct State {
    absl::Mutex mutex;
    std::deque<absl::AnyInvocable<void() &&>> queue ABSL_GUARDED_BY(mutex);
    bool running ABSL_GUARDED_BY(mutex) = false;
  };
  static void RunOne(Executor* executor, const std::shared_ptr<State>& state);

  Executor* const executor_;
  const std::shared_ptr<State> state_;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_ACTOR_EXECUTOR_H_
