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

// Makes a call at a fixed rate, whatever the answers take: each call has its moment, and how long
// it took counts from then on. So a server that stalls is not spared the calls of that time.
class Caller {
 public:
  // `call` gets the thread and the number of the call. Each thread makes every threads-th.
  Caller(double per_second, int threads, std::function<absl::Status(int thread, int64_t i)> call);
  ~Caller() { Stop(); }
  // From one thread.
  void Stop();

  // Counts calls from now on; before, none counts.
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
