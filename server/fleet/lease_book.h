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
  bool counts = true;    // the lease counts as an attempt
  bool killed = false;   // the worker was lost while running it alone
  bool suspect = false;  // it may be the cause of the worker's loss
  std::string why;
};

// The items of all jobs, and the leases of the items that workers hold. When a lease ends without
// an answer, its item is queued again unless it has used up its attempts. Not thread-safe: the
// owner must lock.
class LeaseBook {
 public:
  // REQUIRES: `options` outlives this object.
  explicit LeaseBook(const FleetOptions* options);

  // ResourceExhausted: the owner, or all owners together, have the maximum number of items.
  absl::Status CheckRoom(const std::string& owner) const;
  WorkQueue& queue() { return queue_; }
  const WorkQueue& queue() const { return queue_; }
  TrackedItem& ItemOf(const Lease& lease) const { return *queue_.Find(lease.item); }
  // Removes and returns an item, and ends its lease if it has one.
  TrackedItem Remove(int64_t item);

  // Leases the first waiting item that `fits` from the lanes that are `open`. If the item must be
  // built, the worker also runs it if `runs` returns true for the lane of the run. Null if there is
  // no such item.
  Lease* Grant(const std::string& worker_id, absl::Time now,
               absl::FunctionRef<bool(const Lane&)> open,
               absl::FunctionRef<bool(const TrackedItem&)> fits,
               absl::FunctionRef<bool(const Lane&)> runs);
  // Null if no current lease has the id.
  Lease* Find(const std::string& lease_id);
  const absl::flat_hash_map<std::string, Lease>& leases() const { return leases_; }
  // Returns the ids of the worker's leases.
  const std::set<std::string>& Of(const std::string& worker_id) const;
  // Returns the leases whose deadlines have passed since the last call.
  std::vector<std::string> Overdue(absl::Time now);

  // An item that is not tried again, and why.
  struct GivenUp {
    TrackedItem item;
    std::string worker_id;
    std::string why;
  };
  // Ends a lease without an answer. Returns nullopt if its item waits again.
  std::optional<GivenUp> End(const std::string& lease_id, LeaseEnd end);
  // Does the same for every lease of a lost worker.
  std::vector<GivenUp> EndAllOf(const std::string& worker_id, const std::string& why);
  // Ends a lease that has built an artifact. Its item then waits for the run.
  void EndBuild(const Lease& lease, const record::MeasureResult& result, BuilderVersion builder);

  // Drops everything. Returns the items, which the caller should destroy without a lock.
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
  // Leases in the order of their deadlines. Some of them may have ended already.
  std::deque<std::pair<absl::Time, std::string>> deadlines_;
  Counts counts_;
  int64_t next_lease_ = 1;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_LEASE_BOOK_H_
