#ifndef HONE_TESTS_BENCH_LOAD_TIMERS_H_
#define HONE_TESTS_BENCH_LOAD_TIMERS_H_

#include <functional>
#include <map>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace hone::load {

// A thread that calls functions at given times. Thread-safe.
class Timers {
 public:
  Timers() : thread_([this] { Run(); }) {}
  ~Timers();  // drops pending functions
  void At(absl::Time time, std::function<void()> call);

 private:
  void Run();

  absl::Mutex mutex_;
  std::multimap<absl::Time, std::function<void()>> calls_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_TIMERS_H_
