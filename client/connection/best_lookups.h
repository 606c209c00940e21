#ifndef HONE_CLIENT_CONNECTION_BEST_LOOKUPS_H_
#define HONE_CLIENT_CONNECTION_BEST_LOOKUPS_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "hone/v1/tuning.grpc.pb.h"

namespace hone::client {

// Many LookupBest calls on one connection, a few dozen of which are in flight at a time. Slows down
// when the server refuses calls because of its rate limit. Used once, by one thread; gRPC's threads
// call OnDone.
class BestLookups {
 public:
  // `requests` must outlive this object. `limit` is the longest time of each call.
  BestLookups(v1::TuningService::Stub& stub, absl::Span<const v1::LookupBestRequest> requests,
              absl::Duration limit)
      : stub_(stub), requests_(requests), limit_(limit), answers_(requests.size()) {}

  // Makes the calls and waits for them. Answer i belongs to request i; nullopt: no best is known.
  // An error of a call ends the others and is returned. ResourceExhausted: the server has refused
  // all calls for longer than `limit`.
  absl::StatusOr<std::vector<std::optional<v1::Best>>> Run();

 private:
  // The outcome of the calls up to the first refusal.
  struct Round {
    size_t answered = 0;
    absl::Status refusal;  // the last one; OK if there was none
    bool is_last = false;
  };

  // Makes the waiting calls until one is refused, and waits for those in flight.
  absl::StatusOr<Round> RunUntilRefused();
  void Start(size_t index);
  void OnDone(size_t index, const absl::Status& status, v1::Best& answer);

  v1::TuningService::Stub& stub_;
  const absl::Span<const v1::LookupBestRequest> requests_;
  const absl::Duration limit_;
  absl::Mutex mutex_;
  std::vector<std::optional<v1::Best>> answers_ ABSL_GUARDED_BY(mutex_);
  std::vector<size_t> waiting_ ABSL_GUARDED_BY(mutex_);  // requests, the next one last
  Round round_ ABSL_GUARDED_BY(mutex_);
  size_t in_flight_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::client

#endif  // HONE_CLIENT_CONNECTION_BEST_LOOKUPS_H_
