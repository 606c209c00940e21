#ifndef HONE_TESTS_BENCH_LOAD_CALLER_H_
#define HONE_TESTS_BENCH_LOAD_CALLER_H_

#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/bench/load/spread.h"

namespace hone::load {

// Makes calls at a fixed rate. Each call has a scheduled time, and its latency counts from then, so
// calls that a stalled server delays are counted in full.
class Caller {
 public:
  // `call` receives the thread's index and the call's number. Each thread makes every threads-th
  // call.
  Caller(double per_second, int threads, std::function<absl::Status(int thread, int64_t i)> call);
  ~Caller() { Stop(); }
  // Call it from one thread.
  void Stop();

  // Starts counting; earlier calls do not count.
  void Mark() { counting_ = true; }
  const Spread& took() const { return took_; }
  int64_t failed() const { return failed_; }

 private:
  void Run(int thread);

  const double per_second_;
  const int number_of_threads_;
  const std::function<absl::Status(int, int64_t)> call_;
  const absl::Time start_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> counting_{false};
  std::atomic<int64_t> failed_{0};
  Spread took_;
  std::vector<std::thread> threads_;
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_CALLER_H_
