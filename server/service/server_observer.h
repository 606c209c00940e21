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

// Is told what happens in a server, for metrics. Thread-safe; must not block.
class ServerObserver {
 public:
  virtual ~ServerObserver() = default;
  // A call has ended. `method`: "/hone.v1.TuningService/CreateJob", or "/hone.v1/unknown" for every
  // unknown method. `took`: from its arrival to its status; of a long-poll most of that is
  // waiting.
  virtual void OnCall(absl::string_view method, grpc::StatusCode code, absl::Duration took) = 0;
  // A call of Synchronize was answered: what the server worked on it from its arrival on – letting
  // it in, taking in what it says, making the answer – without the time that it was held.
  virtual void OnSynchronize(absl::Duration handling) = 0;
  // A worker is told that a trial's result is durable.
  virtual void OnResult(record::Outcome outcome) = 0;
};

// How a server stands, in numbers.
struct ServerStats {
  std::map<std::string, int64_t> workers;  // by state: "connected", "away", "refused"
  std::map<std::string, int64_t> jobs;     // under way, by state
  std::map<std::string, int64_t> leases;   // by phase: "waiting", "leased"
  std::map<std::string, int64_t> fleet;    // since the start: "granted", "results", "requeued", …
  int64_t store_bytes = 0;
  int64_t store_queued_writes = 0;
  int64_t unstored_standings = 0;  // workers whose standing could not be stored yet
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_SERVER_OBSERVER_H_
