#ifndef HONE_SERVER_JOB_NETWORK_NETWORK_CHILDREN_H_
#define HONE_SERVER_JOB_NETWORK_NETWORK_CHILDREN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/job/actor/child_jobs.h"
#include "server/job/actor/job_actor.h"

namespace hone::job {

// The jobs that tune the tasks of a job of networks, its children (TaskJobId). A child is created
// with the first trials that its task gets. Their progress is copied into the state of the job.
//
// Used only on the strand of the job, which must live longer.
class NetworkChildren {
 public:
  struct Child {
    bool exists = false;
    bool creating = false;   // or being reopened
    bool restoring = false;  // it existed before, and its search is not restored yet
    bool begun = false;
    bool finishing = false;
    bool ended = false;
    std::optional<absl::Time> due;  // the end of its part of the time, if it only confirms
    int64_t allowance = 0;          // the last one that was granted
    int64_t used = 0;               // the used part when the child was created or reopened
    std::shared_ptr<const JobSnapshot> last;  // null: not read yet
    bool IsUnfinished() const { return creating || (exists && !ended); }
  };

  // `batch`: see UpdateTask.
  NetworkChildren(JobActor& job, int64_t batch) : job_(job), batch_(batch) {}

  // Finds the children that earlier servers created, and begins to count the time. If the job is
  // resumed, reopens those that were cancelled with it, or failed and can be resumed.
  absl::Status Find();
  // Reads the progress of the children, and sums up their counts.
  void Refresh();
  // Distributes the time since the last call among the tasks in flight.
  void CountTime();
  // Gives a task more trials. Creates its job, or starts it again, if necessary.
  void Grant(size_t task, int64_t trials);
  // Tells a child to stop its search and to confirm, in an equal part of `left`.
  void Finish(size_t task, absl::Duration left);
  // Ends all of them, also those that are being created.
  void Cancel();

  // One per task, in their order. Empty before Find.
  const std::vector<Child>& list() const { return children_; }
  const Child& operator[](size_t task) const { return children_[task]; }
  int64_t Existing() const;
  int64_t Unfinished() const;
  // The number of trials of a task that are granted but not yet measured.
  int64_t InFlight(size_t task) const;
  bool IsAnyInFlight() const;
  bool IsAnyRestoring() const;

 private:
  NetworkState& network() { return *job_.state().network; }
  ChildJobs& jobs() const { return *job_.services().children; }
  std::string Id(size_t task) const { return TaskJobId(job_.id(), task); }
  JobSpec SpecOf(size_t task) const;
  void RefreshChild(size_t task);
  void CountTrials();
  // Starts an ended child again, with its allowance.
  void Reopen(size_t task);
  ChildJobs::Done WhenGranted(size_t task);
  void OnGranted(size_t task, const absl::Status& status);

  JobActor& job_;
  const int64_t batch_;
  std::vector<Child> children_;
  absl::Time counted_;  // the last call of CountTime
  // How much later than told the children end, on average.
  absl::Duration lateness_ = absl::ZeroDuration();
  bool cancelled_ = false;
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_NETWORK_NETWORK_CHILDREN_H_
