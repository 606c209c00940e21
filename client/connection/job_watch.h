#ifndef HONE_CLIENT_CONNECTION_JOB_WATCH_H_
#define HONE_CLIENT_CONNECTION_JOB_WATCH_H_

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "hone/v1/tuning.grpc.pb.h"

namespace hone::client {

// One WatchJob stream. Each new state replaces the previous one: a slow reader sees fewer states,
// but always the last one. Owned and used by one thread; gRPC's threads call the reactor.
// Destroying it ends the stream.
class JobWatch final : private grpc::ClientReadReactor<v1::Job> {
 public:
  JobWatch(v1::TuningService::Stub& stub, const std::string& id, absl::Duration limit);
  ~JobWatch() override;

  // Waits up to `limit` for a state that was not returned before. nullopt: no state arrived, or the
  // stream has ended.
  std::optional<v1::Job> Next(absl::Duration limit);
  // Whether the stream has ended and its last state was returned.
  bool Ended();
  // The final status of the stream. REQUIRES Ended().
  absl::Status status();

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  grpc::ClientContext context_;
  v1::GetJobRequest request_;
  v1::Job incoming_;  // owned by gRPC between StartRead and OnReadDone
  absl::Mutex mutex_;
  std::optional<v1::Job> newest_ ABSL_GUARDED_BY(mutex_);
  bool done_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_JOB_WATCH_H_
