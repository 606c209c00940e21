#ifndef HONE_TESTS_BENCH_LOAD_SESSION_H_
#define HONE_TESTS_BENCH_LOAD_SESSION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "hone/v1/worker.grpc.pb.h"
#include "tests/bench/load/counts.h"
#include "tests/bench/load/timers.h"
#include "tests/bench/load/transfers.h"

namespace hone::load {

struct SessionOptions {
  std::string worker_id;
  int slots = 2;            // leases that it holds: one running, the others waiting
  absl::Duration run_time;  // time its device takes for a candidate, ±20 %
};

// One simulated worker, on a connection that several may share. It registers, takes leases, "runs"
// them one after another, reports each result until it is acknowledged, and handles cancellations
// and requests for artifacts. It calls at the same times as hone-worker (worker/agent/worker.cc):
// at most two calls at a time, one that the server holds and one with news; news within 5 ms go
// together; and no call while the answer to results is pending. Only the device is simulated.
// Thread-safe.
class Session {
 public:
  // Dependencies. All of them live until the end of the process, because calls and timers point to
  // them.
  struct Rooms {
    const v1::Capabilities* device = nullptr;
    Timers* timers = nullptr;
    Transfers* transfers = nullptr;
    Counts* counts = nullptr;
  };
  Session(SessionOptions options, const std::shared_ptr<grpc::Channel>& channel,
          const Rooms& rooms);

  // Registers the worker. Called once.
  void Start();

 private:
  struct Held {
    v1::Lease lease;
    v1::LeasePhase phase = v1::LEASE_PHASE_QUEUED;
    std::string artifact_digest;
  };
  struct Finished {
    v1::FinishedLease message;
    absl::Time since;
    int64_t call = 0;  // the call that carries it; 0: none
  };
  struct Call {
    absl::Time begun;
    grpc::ClientContext context;
    v1::SynchronizeRequest request;
    v1::SynchronizeResponse response;
  };

  // Starts a call if one is due.
  void Step();
  // Returns when the next call begins if nothing else happens.
  absl::Time NextCall() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Call> MakeCall(int64_t* number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answered(int64_t number, const v1::SynchronizeResponse& response,
                const grpc::Status& status);
  void Apply(const v1::SynchronizeResponse& response, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(const v1::Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Build(Held& held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks a lease as ready: it has its artifact and waits for the device.
  void Ready(const std::string& lease_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ran(const std::string& lease_id);
  // Sets the result of a held lease.
  void Finish(const std::string& lease_id, v1::MeasureResult result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionOptions options_;
  const Rooms rooms_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  absl::Mutex mutex_;
  uint64_t runs_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, Held> held_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);  // held leases that wait to run
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Finished> finished_ ABSL_GUARDED_BY(mutex_);
  // Names of the artifacts it built, by digest, and their order, oldest first.
  absl::flat_hash_map<std::string, std::string> built_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> built_order_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> fetched_ ABSL_GUARDED_BY(mutex_);

  std::map<int64_t, std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  int64_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_call_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();       // not before this, …
  absl::Time next_idle_call_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // … without news
  absl::Time gather_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();    // … with enough work
  absl::Duration heartbeat_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(10);
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time waking_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // when a timer calls Step
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SESSION_H_
