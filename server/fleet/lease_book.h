#ifndef HONE_SERVER_FLEET_LEASE_BOOK_H_
#define HONE_SERVER_FLEET_LEASE_BOOK_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/fleet/fleet_options.h"
#include "server/fleet/work_queue.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

struct Lease {
  std::string id;
  int64_t item = 0;
  std::string worker_id;
  bool build = false;
  bool run = false;
  bool alone = false;
  absl::Time granted;
  absl::Time deadline;
  LeasePhase phase = LeasePhase::kQueued;
};

// How a lease without an answer ended.
struct LeaseEnd {
  bool counts = true;    // as an attempt
  bool killed = false;   // the worker was lost while running it alone
  bool suspect = false;  // it may be the cause of the worker's loss
  std::string why;
};

// The items of all jobs, and the leases of those that a worker has. A lease without an answer puts
// its item back into the queue until the item has used up its attempts. Not thread-safe: its owner
// locks.
class LeaseBook {
 public:
  // `options` outlive it.
  explicit LeaseBook(const FleetOptions* options);

  // ResourceExhausted: the owner, or all owners together, have as many items as they may have.
  absl::Status CheckRoom(const std::string& owner) const;
  WorkQueue& queue() { return queue_; }
  const WorkQueue& queue() const { return queue_; }
  TrackedItem& ItemOf(const Lease& lease) const { return *queue_.Find(lease.item); }
  // Takes an item out for good, with its lease if it has one.
  TrackedItem Remove(int64_t item);

  // Leases the first waiting item of the lanes that are `open` and that `fits`, to be run by the
  // worker, too, where `runs` says that of the lane of its run. Null: there is no such item.
  Lease* Grant(const std::string& worker_id, absl::Time now,
               absl::FunctionRef<bool(const Lane&)> open,
               absl::FunctionRef<bool(const TrackedItem&)> fits,
               absl::FunctionRef<bool(const Lane&)> runs);
  // Null: the id is not that of a current lease.
  Lease* Find(const std::string& lease_id);
  const absl::flat_hash_map<std::string, Lease>& leases() const { return leases_; }
  // Ids of the leases that the worker has.
  const std::set<std::string>& Of(const std::string& worker_id) const;
  // Leases whose deadline has come.
  std::vector<std::string> Overdue(absl::Time now);

  // An item that is given up, and why.
  struct GivenUp {
    TrackedItem item;
    std::string worker_id;
    std::string why;
  };
  // Ends a lease without an answer. nullopt: its item waits again.
  std::optional<GivenUp> End(const std::string& lease_id, LeaseEnd end);
  // The same for every lease of a worker that was lost.
  std::vector<GivenUp> EndAllOf(const std::string& worker_id, const std::string& why);
  // The lease has built the artifact that is to be run; its item waits for that.
  void EndBuild(const Lease& lease, const record::MeasureResult& result, BuilderVersion builder);

  // Drops everything; returns the items, which should be destroyed without a lock.
  WorkQueue Clear();

  struct Counts {
    int64_t granted = 0;
    int64_t requeued = 0;
    int64_t poisoned = 0;
  };
  const Counts& counts() const { return counts_; }

 private:
  Lease Erase(const std::string& lease_id);

  const FleetOptions& options_;
  const std::string instance_;  // lease ids begin with it
  WorkQueue queue_;
  absl::flat_hash_map<std::string, Lease> leases_;
  absl::flat_hash_map<std::string, std::set<std::string>> by_worker_;  // without empty entries
  // Leases in the order of their deadlines, also some that have ended.
  std::deque<std::pair<absl::Time, std::string>> deadlines_;
  Counts counts_;
  int64_t next_lease_ = 1;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_LEASE_BOOK_H_
