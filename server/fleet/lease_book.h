#ifndef HONE_SERVER_FLEET_LEASE_BOOK_H_
#define HONE_SERVER_FLEET_LEASE_BOOK_H_

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/fleet/worker.h"

namespace hone::fleet {

// Priorities of jobs.
inline constexpr int kLowPriority = -1;
inline constexpr int kNormalPriority = 0;
inline constexpr int kHighPriority = 1;

// Stride scheduling (Waldspurger, Weihl 1995) on two levels: owners, and the jobs of each owner.
// Every owner and every job has a position, and the smallest position goes next. A grant adds the
// inverse of the priority's weight to the positions of its owner and its job; the weight is 16 for
// high, 4 for normal and 1 for low priority. Owners with jobs of the same priority therefore get
// equal shares, regardless of their numbers of jobs. A high-priority job gets four times as much as
// a normal one, and no job starves. An owner gains nothing from a pause: a position below that of
// the last grant is raised to it. Not thread-safe.
class FairShare {
 public:
  // Turns are compared; the smaller one goes first.
  using Turn = std::tuple<double, double>;
  Turn TurnOf(const std::string& owner, const std::string& job) const;
  // Called when a lease of the job is granted.
  void Charge(const std::string& owner, const std::string& job, int priority);

 private:
  // The positions of all owners, or of one owner's jobs. A name without an entry is at `now`.
  struct Line {
    double now = 0;  // the position of the last grant
    absl::flat_hash_map<std::string, double> behind;
    double Of(const std::string& name) const;
    void Move(const std::string& name, double by);
  };
  Line owners_;
  absl::flat_hash_map<std::string, Line> jobs_;  // by owner
};

// Determines which workers can take an item. Items of one lane wait for the same workers.
struct Lane {
  std::string target_key;
  bool build = false;     // false: the artifact exists and is only run
  std::string worker_id;  // the worker that the item is pinned to; "": any
  bool alone = false;     // only a worker without other leases may run the item
  friend auto operator<=>(const Lane&, const Lane&) = default;
};

// An item and its state, from Submit to its end.
struct TrackedItem {
  int64_t id = 0;
  std::shared_ptr<const WorkItem> work;
  WorkDone done;
  // The artifact to run, from the item or from a build lease; "" until it is built.
  std::string artifact_digest;
  record::BuildFacts facts;  // of the build lease
  BuilderVersion builder;    // of the artifact
  std::string builder_id;    // the worker that has the artifact

  std::string lease_id;             // "" while waiting
  int attempts = 0;                 // leases that ended without an answer and count as attempts
  int device_errors = 0;            // device_lost answers, which are failures of the worker
  std::string last_failure;         // why the last attempt ended
  std::vector<std::string> killed;  // workers that were lost while running it
  bool suspect = false;             // it may have killed a worker, and is retried alone

  Lane lane() const {
    return {work->target_key, artifact_digest.empty(), work->worker_id, suspect};
  }
};

// The items of all jobs, and the order in which waiting items are granted: by the fair shares of
// owners and jobs, then by priority, then by the age of the job, then in order of submission.
// Requeued items go first within their job. Not thread-safe.
class WorkQueue {
 public:
  // Adds a waiting item and returns its id.
  int64_t Add(WorkItem work, WorkDone done);
  // Returns the first waiting item that `fits` from the lanes that are `open`, and counts it as
  // leased. Null if there is no such item.
  TrackedItem* Take(absl::FunctionRef<bool(const Lane&)> open,
                    absl::FunctionRef<bool(const TrackedItem&)> fits);
  // Puts a leased item back at the front of its job's queue.
  void Requeue(TrackedItem& item);
  // Makes a waiting item wait for a build again, because its artifact is gone.
  void Rebuild(TrackedItem& item);
  // Null if there is no such item.
  TrackedItem* Find(int64_t id) const;
  // Removes and returns an item.
  TrackedItem Remove(int64_t id);

  std::vector<int64_t> ItemsOf(const std::string& job_id) const;
  // Returns the lanes with waiting items.
  std::vector<Lane> Lanes() const;
  // Returns the waiting items of a lane.
  std::vector<int64_t> WaitingIn(const Lane& lane) const;
  // Returns the lanes in which items have started to wait since the last call.
  std::set<Lane> TakeFresh() { return std::exchange(fresh_, {}); }
  // Makes TakeFresh return all lanes with waiting items, because other workers may take them now.
  void RefreshAll();
  bool HasWaiting() const { return !waiting_.empty(); }
  bool HasSuspects() const { return suspects_ > 0; }  // among the waiting items
  bool HasWaiting(const Lane& lane) const { return waiting_.contains(lane); }
  int64_t waiting() const { return waiting_count_; }
  int64_t items() const { return static_cast<int64_t>(items_.size()); }
  int64_t items(const std::string& owner) const;

 private:
  struct JobItems {
    std::string owner;
    int64_t order = 0;  // of the job's first item
    std::set<int64_t> items;
  };
  using Jobs = std::map<std::string, std::deque<int64_t>>;  // waiting items by job
  void Wait(const TrackedItem& item, bool first);
  void Unwait(const TrackedItem& item);

  absl::flat_hash_map<int64_t, std::unique_ptr<TrackedItem>> items_;
  absl::flat_hash_map<std::string, JobItems> jobs_;
  std::map<std::string, int64_t> owners_;  // items of each
  std::map<Lane, Jobs> waiting_;           // without empty entries
  std::set<Lane> fresh_;
  int64_t waiting_count_ = 0;
  int64_t suspects_ = 0;  // among the waiting items
  FairShare shares_;
  int64_t next_id_ = 1;
};

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
  absl::Time phase_since;  // when the server learned of the phase
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
