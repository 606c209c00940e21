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
  int slots = 2;            // leases that it holds: one that runs, and those that wait for it
  absl::Duration run_time;  // that its device takes for a candidate, a fifth more or less
};

// One worker as the server sees it, on a connection that several may share: it registers, takes
// leases, "runs" them one after another on its device, reports each result until it is
// acknowledged, and heeds cancels and wishes for artifacts. It calls when hone-worker would
// (worker/agent/worker.cc): at most two calls at a time, one that the server holds and one with
// news, news that come within 5 ms together, and none while the answer to results is awaited. Only
// what its device does is made up. Thread-safe.
class Session {
 public:
  // All live as long as it does: to the end of the process, since calls and timers point to it.
  struct Rooms {
    const v1::Capabilities* device = nullptr;
    Timers* timers = nullptr;
    Transfers* transfers = nullptr;
    Counts* counts = nullptr;
  };
  Session(SessionOptions options, const std::shared_ptr<grpc::Channel>& channel,
          const Rooms& rooms);

  // Registers. Called once.
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
    int64_t call = 0;  // that carries it; 0: none
  };
  struct Call {
    absl::Time begun;
    grpc::ClientContext context;
    v1::SynchronizeRequest request;
    v1::SynchronizeResponse response;
  };

  // Starts the call that is due, if one is.
  void Step();
  // When the next call begins, if nothing else happens.
  absl::Time NextCall() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Call> MakeCall(int64_t* number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answered(int64_t number, const v1::SynchronizeResponse& response,
                const grpc::Status& status);
  void Apply(const v1::SynchronizeResponse& response, absl::Time now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Take(const v1::Lease& lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Build(Held& held) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The lease has its artifact and waits for the device.
  void Ready(const std::string& lease_id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Ran(const std::string& lease_id);
  // The held lease has a result.
  void Finish(const std::string& lease_id, v1::MeasureResult result)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const SessionOptions options_;
  const Rooms rooms_;
  const std::unique_ptr<v1::WorkerService::Stub> stub_;
  absl::Mutex mutex_;
  uint64_t runs_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::flat_hash_map<std::string, Held> held_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> ready_ ABSL_GUARDED_BY(mutex_);  // held leases that wait to be run
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Finished> finished_ ABSL_GUARDED_BY(mutex_);
  // Names of the artifacts that it built, by digest, the oldest first in the order.
  absl::flat_hash_map<std::string, std::string> built_ ABSL_GUARDED_BY(mutex_);
  std::deque<std::string> built_order_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> fetched_ ABSL_GUARDED_BY(mutex_);

  std::map<int64_t, std::shared_ptr<Call>> calls_ ABSL_GUARDED_BY(mutex_);
  int64_t last_call_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time next_call_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();       // never earlier, …
  absl::Time next_idle_call_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // … without news
  absl::Time gather_until_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // … while enough to do
  absl::Duration heartbeat_ ABSL_GUARDED_BY(mutex_) = absl::Seconds(10);
  bool news_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time waking_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteFuture();  // a timer calls Step then
};

}  // namespace hone::load

#endif  // HONE_TESTS_BENCH_LOAD_SESSION_H_
