#include "tests/bench/load/caller.h"

#include <utility>

#include "absl/time/clock.h"

namespace hone::load {

Caller::Caller(double per_second, int threads, std::function<absl::Status(int, int64_t)> call)
    : per_second_(per_second),
      number_of_threads_(threads),
      call_(std::move(call)),
      start_(absl::Now()) {
  for (int thread = 0; thread < threads; ++thread) {
    threads_.emplace_back([this, thread] { Run(thread); });
  }
}

void Caller::Stop() {
  stopping_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Caller::Run(int thread) {
  for (int64_t i = thread; !stopping_; i += number_of_threads_) {
    const absl::Time moment = start_ + absl::Seconds(static_cast<double>(i) / per_second_);
    const bool counts = counting_;
    if (const absl::Time now = absl::Now(); moment > now) absl::SleepFor(moment - now);
    const absl::Status status = call_(thread, i);
    if (!counts) continue;
    if (!status.ok()) ++failed_;
    took_.Add(absl::Now() - moment);
  }
}

}  // namespace hone::load
