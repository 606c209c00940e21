#ifndef HONE_SERVER_FLEET_WORK_QUEUE_H_
#define HONE_SERVER_FLEET_WORK_QUEUE_H_

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "server/fleet/fair_share.h"
#include "server/fleet/work.h"

namespace hone::fleet {

// Which workers can take an item. Items of one lane wait for the same workers.
struct Lane {
  std::string target_key;
  bool build = false;     // false: its artifact exists, and it is only run
  std::string worker_id;  // the worker that it is pinned to; "": any
  bool alone = false;     // only a worker that holds nothing else runs it
  friend auto operator<=>(const Lane&, const Lane&) = default;
};

// An item as the fleet follows it, from Submit to its end.
struct TrackedItem {
  int64_t id = 0;
  std::shared_ptr<const WorkItem> work;
  WorkDone done;
  absl::Time submitted;
  // The artifact to run, from the item or from a build lease; "" while it is to be built.
  std::string artifact_digest;
  record::BuildFacts facts;  // of the build lease
  BuilderVersion builder;    // of the artifact
  std::string builder_id;    // the worker that has the artifact

  std::string lease_id;      // "" while waiting
  int attempts = 0;          // leases that ended without an answer, not by the server's fault
  int device_errors = 0;     // answers device_lost, which are the worker's failures
  std::string last_failure;  // of its attempts
  std::vector<std::string> killed;  // workers that were lost while running it
  bool suspect = false;             // it may have killed a worker: it is retried alone

  Lane lane() const {
    return {work->target_key, artifact_digest.empty(), work->worker_id, suspect};
  }
};

// The items of all jobs and the order in which the waiting ones are granted: by the fair shares of
// owners and jobs, then the higher priority, then the older job, then in order of submission;
// requeued items go first in their job. Not thread-safe.
class WorkQueue {
 public:
  // Adds a waiting item and returns its id.
  int64_t Add(WorkItem work, WorkDone done, absl::Time now);
  // The first waiting item of the lanes that are `open`, and that `fits`; it counts as leased from
  // now on. Null: there is no such item.
  TrackedItem* Take(absl::FunctionRef<bool(const Lane&)> open,
                    absl::FunctionRef<bool(const TrackedItem&)> fits);
  // Puts a leased item back at the front of its job's queue.
  void Requeue(TrackedItem& item);
  // The artifact of a waiting item is gone: it is to be built.
  void Rebuild(TrackedItem& item);
  // Null: no such item.
  TrackedItem* Find(int64_t id) const;
  // Takes the item out for good.
  TrackedItem Remove(int64_t id);

  std::vector<int64_t> ItemsOf(const std::string& job_id) const;
  // Lanes that items wait in, and the items of one.
  std::vector<Lane> Lanes() const;
  std::vector<int64_t> WaitingIn(const Lane& lane) const;
  // Lanes in which something has come to wait since the last call.
  std::set<Lane> TakeFresh() { return std::exchange(fresh_, {}); }
  // Items that waited for something may be taken by others now.
  void RefreshAll();
  bool HasWaiting() const { return !waiting_.empty(); }
  bool HasSuspects() const { return suspects_ > 0; }  // that wait
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
  int64_t suspects_ = 0;  // of those
  FairShare shares_;
  int64_t next_id_ = 1;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_WORK_QUEUE_H_
