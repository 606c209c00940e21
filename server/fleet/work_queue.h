#ifndef HONE_SERVER_FLEET_WORK_QUEUE_H_
#define HONE_SERVER_FLEET_WORK_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/fleet/work.h"

namespace hone::fleet {

// An item as the fleet follows it, from Submit to its end.
struct TrackedItem {
  int64_t id = 0;
  WorkItem work;
  WorkDone done;
  // The artifact to run, from the item or from a build lease; "" while it is to be built.
  std::string artifact_digest;
  record::BuildFacts facts;  // of the build lease
  std::string builder_id;    // the worker that has the artifact

  std::string lease_id;  // "" while waiting
  int attempts = 0;      // leases that ended without an answer and by no fault of the server
  std::vector<std::string> killed;                        // workers that were lost while running it
  absl::Time unsatisfied_since = absl::InfiniteFuture();  // no registered worker can do it since
};

// The items of all jobs and the order in which the waiting ones are granted: by priority, then the
// job with the fewest leases (the older one at a tie), then in order of submission; requeued items
// go first in their job. Not thread-safe.
class WorkQueue {
 public:
  // Adds a waiting item and returns its id.
  int64_t Add(WorkItem work, WorkDone done);
  // The first waiting item that `fits`; it counts as leased from now on. Null: none fits.
  TrackedItem* Take(const std::function<bool(const TrackedItem&)>& fits);
  // Puts a leased item back in front of its job's queue.
  void Requeue(TrackedItem& item);
  // Null: no such item.
  TrackedItem* Find(int64_t id);
  // Takes the item out for good.
  TrackedItem Remove(int64_t id);

  std::vector<int64_t> ItemsOf(const std::string& job_id) const;
  std::vector<int64_t> WaitingItems() const;

 private:
  struct JobQueue {
    int64_t order = 0;  // of the job's first item
    int priority = 0;
    int leased = 0;
    std::deque<int64_t> waiting;
  };
  std::map<int64_t, TrackedItem> items_;
  std::map<std::string, JobQueue> jobs_;
  int64_t next_id_ = 1;
};

}  // namespace hone::fleet

#endif  // HONE_SERVER_FLEET_WORK_QUEUE_H_
