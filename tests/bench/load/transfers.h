#ifndef HONE_TESTS_BENCH_LOAD_TRANSFERS_H_
#define HONE_TESTS_BENCH_LOAD_TRANSFERS_H_

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/channel.h"
#include "hone/v1/worker.grpc.pb.h"
#include "tests/bench/load/counts.h"

namespace hone::load {

// Transfers artifacts to and from the server, one after another, for all sessions of a process;
// there are a few per second. Thread-safe.
class Transfers {
 public:
  // `counts` must outlive this object.
  Transfers(const std::shared_ptr<grpc::Channel>& channel, Counts* counts);
  ~Transfers();  // drops pending transfers
  void Upload(const std::string& digest, std::string bytes);
  // Calls `done` in any case.
  void Download(const std::string& digest, std::function<void(bool came)> done);

 private:
  void Run();
  // Prints the first failure.
  void Count(absl::string_view what, const grpc::Status& status, bool whole,
             std::atomic<int64_t>& good);

  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  Counts* const counts_;
  absl::Mutex mutex_;
  std::deque<std::function<void()>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_TRANSFERS_H_
