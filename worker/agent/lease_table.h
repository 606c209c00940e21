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
#include "common/record/given_inputs.h"
#include "common/record/record.h"
#include "hone/v1/worker.pb.h"

namespace hone::agent {

// The key of the reference that a lease needs.
inline std::string ReferenceKeyOf(const v1::Lease& lease) {
  return record::ReferenceKey(lease.workload_digest(), lease.inputs_digest());
}

// A lease in progress.
struct HeldWork {
  v1::Lease lease;
  v1::LeasePhase phase = v1::LEASE_PHASE_QUEUED;
  bool cancelled = false;       // its result is dropped
  std::string artifact_digest;  // set once built or fetched
  record::BuildFacts facts;     // set once built
  absl::Time deadline;          // of the lease
  absl::Time ready;             // when it became ready to run
};

// The leases that the worker holds, in three queues (to prepare, to run, finished), and the
// protocol's rules for them. Pure state without threads or clocks; guarded by the worker's mutex.
class LeaseTable {
 public:
  // The number of leases to hold: enough that builders and the runner never wait for the network.
  struct Capacity {
    int builds = 0;  // leases that begin with a build; 0: it cannot build
    int runs = 0;    // leases that only run; 0: it cannot run
  };
  explicit LeaseTable(Capacity capacity) : capacity_(capacity) {}

  // Sets held, finished and the free slots of a request. Skips results that another call in
  // progress carries, unless the worker is draining: its last call reports everything.
  void Describe(bool draining, v1::SynchronizeRequest& request) const;
  // Marks the request's results as carried by this call until CallEnds. If the call was answered,
  // the server has them and will report when they are durable; otherwise their state is unknown.
  void CallBegins(int64_t number, const v1::SynchronizeRequest& request);
  void CallEnds(int64_t number, bool answered);
  // Returns whether there is a result that no call in progress carries and no answered call has
  // carried.
  bool HasNews() const;
  // Returns whether at least half of the capacity is in use; results then need not be reported at
  // once to get more leases.
  bool IsStocked() const { return 2 * held() >= std::max(capacity_.builds, capacity_.runs); }

  // Applies the server's response. Leases that are already known (granted again because an answer
  // was lost, or finished in the meantime) are not started twice. Returns the artifacts of
  // cancelled leases that waited to run.
  std::vector<std::string> Apply(const v1::SynchronizeResponse& response, absl::Time now);

  // Returns the next lease to build or fetch and sets its phase to building; null if there is none.
  std::shared_ptr<HeldWork> NextToPrepare();
  // Marks a lease as built or fetched: it waits to run.
  void Prepared(const std::shared_ptr<HeldWork>& work, absl::Time now);

  // Returns at most `max` leases to run, all of one workload and its inputs, starting with the one
  // that has waited longest. They stay in phase building until MarkRunning.
  std::vector<std::shared_ptr<HeldWork>> NextToRun(int max);
  void MarkRunning(HeldWork& work) { work.phase = v1::LEASE_PHASE_RUNNING; }

  int waiting_to_prepare() const { return static_cast<int>(to_prepare_.size()); }
  int waiting_to_run() const { return static_cast<int>(to_run_.size()); }
  // Number of leases that are being or will be prepared.
  int preparing() const { return preparing_; }
  // Returns whether a lease of the workload that runs next is still being prepared.
  bool MoreToRunIsPreparing() const;
  // When the oldest lease that waits to run became ready; InfiniteFuture if there is none.
  absl::Time oldest_ready() const;
  // The workloads of the leases that will run here, by the key of their reference, so that
  // references can be made in advance.
  struct WorkloadUse {
    std::string digest;
    std::string text;
    std::string inputs_digest;  // of the data to measure on; "": seeded inputs
    int leases = 0;
  };
  const std::map<std::string, WorkloadUse>& workloads() const { return workloads_; }

  // Ends a lease. Returns whether the result is to be reported (it was not cancelled).
  bool Finish(const std::shared_ptr<HeldWork>& work, v1::FinishedLease finished);
  // Adds a result of an earlier process, from the spool.
  void AddFinished(v1::FinishedLease finished);

  int held() const { return static_cast<int>(held_.size()); }

 private:
  struct Result {
    v1::FinishedLease message;
    int64_t call = 0;       // the call that carries it; 0: none
    bool answered = false;  // whether a call that carried it was answered
  };
  void Forget(const std::shared_ptr<HeldWork>& work);

  const Capacity capacity_;
  absl::flat_hash_map<std::string, std::shared_ptr<HeldWork>> held_;
  std::deque<std::shared_ptr<HeldWork>> to_prepare_;
  std::deque<std::shared_ptr<HeldWork>> to_run_;
  int preparing_ = 0;
  std::map<std::string, Result> finished_;
  std::map<std::string, WorkloadUse> workloads_;
  // Ids of recently finished leases: a late answer may name them again.
  absl::flat_hash_set<std::string> done_;
  std::deque<std::string> done_order_;
};

}  // namespace hone::agent

#endif  // HONE_WORKER_AGENT_LEASE_TABLE_H_
