#include "server/job/actor/executor.h"

#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <typeinfo>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/thread_priority.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// "std::length_error".
std::string TypeOf(const std::exception& thrown) {
  int failed = 0;
  char* name = abi::__cxa_demangle(typeid(thrown).name(), nullptr, nullptr, &failed);
  const std::string type = failed == 0 ? name : typeid(thrown).name();
  std::free(name);
  return type;
}

}  // namespace

absl::Status CatchExceptions(absl::FunctionRef<void()> work) {
  try {
    work();
    return absl::OkStatus();
  } catch (const std::bad_alloc&) {
    return absl::InternalError("std::bad_alloc: out of memory");
  } catch (const std::exception& thrown) {
    return absl::InternalError(absl::StrCat(TypeOf(thrown), ": ", thrown.what()));
  } catch (...) {
    return absl::InternalError("an exception of an unknown type");
  }
}

absl::Status Attempt(absl::FunctionRef<absl::Status()> work) {
  absl::Status status;
  const absl::Status threw = CatchExceptions([&] { status = work(); });
  if (threw.ok()) return status;
  spdlog::error("work for a caller failed: {}", threw.ToString());
  return threw;
}

ThreadPool::ThreadPool(int threads, int nice) : nice_(nice), running_(threads) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

ThreadPool::~ThreadPool() { Stop(); }

bool ThreadPool::Stop(absl::Duration limit) {
  {
    absl::MutexLock lock(&mutex_);
    ending_ = true;
    const auto ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return running_ == 0; };
    if (!mutex_.AwaitWithTimeout(absl::Condition(&ended), limit)) return false;
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  return true;
}

void ThreadPool::Schedule(absl::AnyInvocable<void() &&> work) {
  absl::MutexLock lock(&mutex_);
  queue_.push_back(std::move(work));
}

void ThreadPool::Work() {
  LowerThreadPriority(nice_);
  while (true) {
    absl::AnyInvocable<void() &&> work;
    {
      absl::MutexLock lock(&mutex_);
      auto ready = [this]()
                       ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return ending_ || !queue_.empty(); };
      mutex_.Await(absl::Condition(&ready));
      if (queue_.empty()) {
        --running_;
        return;
      }
      work = std::move(queue_.front());
      queue_.pop_front();
    }
    // A job handles its own exceptions (job_actor.h). For other work, only the result is lost.
    const absl::Status threw = CatchExceptions([&work] { std::move(work)(); });
    if (!threw.ok()) spdlog::error("background work failed: {}", threw.ToString());
  }
}

void Strand::Post(absl::AnyInvocable<void() &&> message) {
  {
    absl::MutexLock lock(&state_->mutex);
    state_->queue.push_back(std::move(message));
    if (state_->running) return;
    state_->running = true;
  }
  executor_->Schedule([executor = executor_, state = state_] { RunOne(executor, state); });
}

// Runs one message and schedules the next, so the strands of many jobs share the threads fairly.
void Strand::RunOne(Executor* executor, const std::shared_ptr<State>& state) {
  absl::AnyInvocable<void() &&> message;
  {
    absl::MutexLock lock(&state->mutex);
    message = std::move(state->queue.front());
    state->queue.pop_front();
  }
  std::move(message)();
  message = nullptr;
  {
    absl::MutexLock lock(&state->mutex);
    if (state->queue.empty()) {
      state->running = false;
      return;
    }
  }
  executor->Schedule([executor, state] { RunOne(executor, state); });
}

}  // namespace hone::job
