#include "tests/bench/load/timers.h"

#include <utility>

#include "absl/time/clock.h"

namespace hone::load {

void Timers::At(absl::Time time, std::function<void()> call) {
  absl::MutexLock lock(&mutex_);
  calls_.emplace(time, std::move(call));
}

Timers::~Timers() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  thread_.join();
}

void Timers::Run() {
  mutex_.Lock();
  while (!stopping_) {
    const absl::Time next = calls_.empty() ? absl::InfiniteFuture() : calls_.begin()->first;
    if (next <= absl::Now()) {
      std::function<void()> call = std::move(calls_.begin()->second);
      calls_.erase(calls_.begin());
      mutex_.Unlock();
      call();
      mutex_.Lock();
      continue;
    }
    const auto earlier = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      return stopping_ || (!calls_.empty() && calls_.begin()->first < next);
    };
    mutex_.AwaitWithDeadline(absl::Condition(&earlier), next);
  }
  mutex_.Unlock();
}

}  // namespace hone::load
