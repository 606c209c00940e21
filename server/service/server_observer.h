#ifndef HONE_SERVER_SERVICE_SERVER_OBSERVER_H_
#define HONE_SERVER_SERVICE_SERVER_OBSERVER_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "grpcpp/support/status.h"

namespace hone::service {

// The interface for metrics of a server. Thread-safe; implementations must not block.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  // Called at the end of a call. `method`: "/hone.v1.TuningService/CreateJob", or
  // "/hone.v1/unknown" for every unknown method. `took`: the time from its arrival to its status,
  // which includes the waiting time of a long-poll.
  virtual void OnCall(absl::string_view method, grpc::StatusCode code, absl::Duration took) = 0;
  // Called when a call of Synchronize is answered. `handling`: the time for admitting the call,
  // processing the report and making the answer, without the time that the call was held.
  virtual void OnSynchronize(absl::Duration handling) = 0;
  // Called when a worker is told that the result of a trial is durable.
  virtual void OnResult(record::Outcome outcome) = 0;
};

// Numbers that describe the state of a server.
struct ServerStats {
  std::map<std::string, int64_t> workers;  // by state: "connected", "away", "refused"
  std::map<std::string, int64_t> jobs;     // unfinished jobs, by state
  std::map<std::string, int64_t> leases;   // by phase: "waiting", "leased"
  std::map<std::string, int64_t> fleet;    // since the start: "granted", "results", "requeued", …
  int64_t store_bytes = 0;
  int64_t store_queued_writes = 0;
  bool store_damaged = false;      // writes are refused, see store::StoreHealth
  int64_t unstored_standings = 0;  // workers whose standing could not be stored yet
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_SERVER_OBSERVER_H_
