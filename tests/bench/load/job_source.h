#ifndef HONE_TESTS_BENCH_LOAD_JOB_SOURCE_H_
#define HONE_TESTS_BENCH_LOAD_JOB_SOURCE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "grpcpp/channel.h"
#include "hone/v1/tuning.grpc.pb.h"

namespace hone::load {

struct JobSourceOptions {
  int jobs = 60;          // in progress at a time
  int64_t trials = 2000;  // per job
  std::string target;     // key
  std::string strategy = "random";
  std::string cost_model = "random";
};

// A user who always has a number of jobs in progress, each for another matmul; when one ends, the
// next starts. The first jobs are shorter, so that they do not all end together. Thread-safe.
class JobSource {
 public:
  JobSource(const std::shared_ptr<grpc::Channel>& channel, JobSourceOptions options);
  ~JobSource() { Stop(); }

  // Creates the first jobs. Returns the error of CreateJob if it fails.
  absl::Status Start();
  // Stops creating jobs. Call it from one thread.
  void Stop();

  int64_t created() const;
  int64_t done() const;
  // Errors of failed jobs and calls.
  std::vector<std::string> failures() const;

 private:
  absl::Status Create(int64_t trials) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Watch();
  void Replace() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const JobSourceOptions options_;
  const std::unique_ptr<v1::TuningService::Stub> stub_;
  absl::Notification stop_;
  std::thread thread_;
  mutable absl::Mutex mutex_;
  std::vector<std::string> running_ ABSL_GUARDED_BY(mutex_);
  int64_t created_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t done_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::string> failures_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_JOB_SOURCE_H_
