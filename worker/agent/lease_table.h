#ifndef HONE_WORKER_AGENT_LEASE_TABLE_H_
#define HONE_WORKER_AGENT_LEASE_TABLE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

// A lease on its way through the worker.
struct HeldWork {
  v1::Lease lease;
  v1::LeasePhase phase = v1::LEASE_PHASE_QUEUED;
  bool cancelled = false;       // its result is dropped
  std::string artifact_digest;  // once it is built or fetched
  record::BuildFacts facts;     // once it is built
  absl::Time deadline;          // of the lease
  absl::Time ready;             // since when it waits to be run
};

// What the worker holds: leases in three queues (to prepare, to run, finished) and the protocol's
// rules about them. Pure state without threads or clocks; the worker guards it with its mutex.
class LeaseTable {
 public:
  // How many leases it asks for: enough that builders and runner never wait for the network.
  struct Capacity {
    int builds = 0;  // that begin with a build; 0: it cannot build
    int runs = 0;    // that only run; 0: it cannot run
  };
  explicit LeaseTable(Capacity capacity) : capacity_(capacity) {}

  // Fills held, finished and the free slots of a request. Results that another call carries at the
  // moment are left out, unless the worker drains: its last call says everything.
  void Describe(bool draining, v1::SynchronizeRequest& request) const;
  // The call of that number carries the request's results, until it has ended. When it was answered
  // the server has them and will say when they are durable; else nobody knows.
  void CallBegins(int64_t number, const v1::SynchronizeRequest& request);
  void CallEnds(int64_t number, bool answered);
  // There is a result that no call carries, and that no answered one has carried.
  bool HasNews() const;
  // Half of what it can hold is left to do: results need not be told at once to get more.
  bool IsStocked() const { return 2 * held() >= std::max(capacity_.builds, capacity_.runs); }

  // Takes in what the server says. Leases that are known already (granted again because an answer
  // was lost, or finished in the meantime) are not started twice.
  struct News {
    bool started = false;
    std::vector<std::string> durable;   // results to forget
    std::vector<std::string> released;  // artifacts of cancelled leases that waited to be run
  };
  News Apply(const v1::SynchronizeResponse& response, absl::Time now);

  // The next lease to build or fetch, now in phase building; null when there is none.
  std::shared_ptr<HeldWork> NextToPrepare();
  // It is built or fetched and waits to be run.
  void Prepared(const std::shared_ptr<HeldWork>& work, absl::Time now);

  // Leases to run, all of one workload, the one that has waited longest first; at most `max`. They
  // stay in phase building until the worker says MarkRunning.
  std::vector<std::shared_ptr<HeldWork>> NextToRun(int max);
  void MarkRunning(HeldWork& work) { work.phase = v1::LEASE_PHASE_RUNNING; }

  int waiting_to_prepare() const { return static_cast<int>(to_prepare_.size()); }
  int waiting_to_run() const { return static_cast<int>(to_run_.size()); }
  // Leases that are or will be prepared.
  int preparing() const { return preparing_; }
  // When the oldest of those waiting to run became ready; InfiniteFuture when none waits.
  absl::Time oldest_ready() const;
  // The workloads of the leases that will run here, by digest: references can be made ahead.
  struct WorkloadUse {
    std::string text;
    int leases = 0;
  };
  const std::map<std::string, WorkloadUse>& workloads() const { return workloads_; }

  // The lease is done. Returns whether the result is to be reported (it was not cancelled).
  bool Finish(const std::shared_ptr<HeldWork>& work, v1::FinishedLease finished);
  // A result of an earlier process, from the spool.
  void AddFinished(v1::FinishedLease finished);

  int held() const { return static_cast<int>(held_.size()); }
  int finished() const { return static_cast<int>(finished_.size()); }

 private:
  struct Result {
    v1::FinishedLease message;
    int64_t call = 0;       // that carries it; 0: none
    bool answered = false;  // a call that carried it was
  };
  void Forget(const std::shared_ptr<HeldWork>& work);

  const Capacity capacity_;
  absl::flat_hash_map<std::string, std::shared_ptr<HeldWork>> held_;
  std::deque<std::shared_ptr<HeldWork>> to_prepare_;
  std::deque<std::shared_ptr<HeldWork>> to_run_;
  int preparing_ = 0;
  std::map<std::string, Result> finished_;
  std::map<std::string, WorkloadUse> workloads_;
  // Ids that were done here a short time ago: an answer that was overtaken may name them again.
  absl::flat_hash_set<std::string> done_;
  std::deque<std::string> done_order_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_LEASE_TABLE_H_
