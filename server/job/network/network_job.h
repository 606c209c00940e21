#ifndef HONE_SERVER_JOB_NETWORK_NETWORK_JOB_H_
#define HONE_SERVER_JOB_NETWORK_NETWORK_JOB_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_services.h"
#include "server/job/scheduler/task_scheduler.h"

namespace hone::job {

// Whether each task gets its first choice measured and confirmed before any gets a second batch.
inline bool HasFirstPass(const JobSpec& spec) { return spec.max_time > absl::ZeroDuration(); }

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
    bool confirming = false;
    bool brief = false;        // it confirms its first choice, and may continue afterwards
    bool tried_brief = false;  // it did so, or tried to
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
  void Confirm(size_t task, absl::Duration left);
  // Tells a child to confirm its first choice briefly. The child ends, and Grant starts it again.
  void ConfirmFirst(size_t task);
  // Ends all of them, also those that are being created.
  void Cancel();

  // One per task, in their order. Empty before Find.
  const std::vector<Child>& list() const { return children_; }
  const Child& operator[](size_t task) const { return children_[task]; }
  int64_t Unfinished() const;
  // The number of trials of a task that are granted but not yet measured.
  int64_t InFlight(size_t task) const;
  bool IsAnyInFlight() const;
  bool IsAnyRestoring() const;

 private:
  NetworkState& network() { return *job_.state().network; }
  JobStarter& jobs() const { return *job_.services().children; }
  std::string Id(size_t task) const { return TaskJobId(job_.id(), task); }
  JobSpec SpecOf(size_t task) const;
  void RefreshChild(size_t task);
  // Whether the search continues after a child has ended in this way, maybe briefly confirmed.
  bool SearchesAfter(const JobSnapshot& child) const;
  // Starts an ended child again, with its allowance.
  void Reopen(size_t task);
  absl::AnyInvocable<void(const absl::Status&) &&> WhenGranted(size_t task);
  void OnGranted(size_t task, const absl::Status& status);

  JobActor& job_;
  const int64_t batch_;
  std::vector<Child> children_;
  absl::Time counted_;  // the last call of CountTime
  // How much later than told the children end, on average.
  absl::Duration lateness_ = absl::ZeroDuration();
  bool cancelled_ = false;
};

// The job of networks. Each task that gets trials is tuned by a separate job, a child (TaskJobId).
// This job raises the allowances of the children by a batch at a time; its scheduler selects the
// child. When its limits are reached, the children confirm their finalists, the heaviest task
// first, and the job ends. Children confirm one after the other, except those that are measuring
// when time is up. Together they have the time of ConfirmationLimit (task_search.h), or the time
// that is left of the request's limit. When the time of a cancelled job or of one with a time limit
// is over, it ends even if some tasks are not confirmed.
//
// A job with a time limit begins with a first pass: each task without a best gets one trial, the
// task with the largest expected share of the time first, and its result is confirmed in one
// process and published. Only then does any task get a second batch.
//
// Everything that the choices depend on is stored: allowances and trials with the children, the
// time and the curves with this job. After a restart it grants nothing until every child has
// restored its search, so that the limit of trials holds.
class NetworkJob final : public JobActor {
 public:
  NetworkJob(const JobServices& services, const JobOptions& options, JobSnapshot snapshot);

 private:
  using Child = NetworkChildren::Child;

  // Notes that the unfinished children end with this job.
  void BeforeSave() override;
  void OnEnd() override;
  void Initialize() override;
  void OnTick() override;
  void OnCancel(bool confirm) override;

  // The number of tasks whose children were looked up; 0 before that.
  size_t Tasks() const { return children_.list().size(); }
  NetworkState& network() { return *state().network; }
  const NetworkState& network() const { return *state().network; }
  absl::Status Open();
  // Reads the progress of the children, and estimates the latency.
  void Refresh();
  std::optional<int> NextTask() const;
  // Grants batches until enough candidates are in flight.
  void Grant();
  // Returns how many tasks are measured or confirmed at a time in the first pass.
  int64_t MostInFirstPass() const;
  // Returns how many trials to grant a task: a batch, or one in the first pass.
  int64_t NextGrant(size_t task) const;
  // Whether a task has to be measured or confirmed before any gets a second batch.
  bool IsInFirstPass() const;
  // Whether the first choice of a task is measured and waits to be confirmed.
  bool AwaitsFirstConfirmation(size_t task) const;
  void ConfirmFirstChoices();
  // Returns why no more trials are granted, or "" if a limit is reached; nullopt to go on.
  std::optional<std::string> WhyDone() const;
  // Returns how long one trial has taken so far on average; 0 before the first.
  absl::Duration TimeOfATrial() const;
  absl::Duration ConfirmationTime() const;
  void BeginConfirming();
  // Limits the confirmation of a job without a time limit, or of a cancelled one.
  void LimitConfirmation();
  bool IsLate() const { return TimeLeft() <= absl::ZeroDuration(); }
  // Describes the confirmation, and that a child waits for a quieter machine.
  void ShowConfirming();
  // Tells the next child to confirm, or ends the job.
  void ContinueConfirming();
  // Ends a job whose time is over, or that a user ends at once. A child that is publishing its best
  // ends with it, so the job waits a moment for its children.
  void EndLate();
  // Gives a child its equal part of the time that is left.
  void ConfirmTask(size_t task);
  // Ends the job. `why`: the reason that it waits no longer for its tasks; "" if all have ended.
  void EndWith(std::string why);

  // The following members are used only on the strand.
  const int64_t batch_;
  std::unique_ptr<TaskScheduler> scheduler_;
  std::vector<double> expected_ns_;  // of the tasks, see TaskProgress
  NetworkChildren children_;
  std::optional<absl::Time> ends_by_;  // set when the children were told to end, see EndLate
  bool ends_now_ = false;              // a user skipped the confirmation
};

// How the state of a job of networks is made and changed, in network_state.cc.

// Returns the state of a new job, with the stored results of its tasks. InvalidArgument: a workload
// is malformed.
absl::StatusOr<NetworkState> NewNetworkState(const JobSpec& spec, const JobServices& services);
// Opens the tasks that were closed when the job ended, for a job that is resumed.
void ReopenTasks(const NetworkSpec& spec, NetworkState& state);

// Returns the number of trials in a batch: an eighth of a task's share of the limit, within the
// bounds of the options.
int64_t TrialsAtATime(const JobSpec& spec, const JobOptions& options);

// Updates a task with the progress of its job. `in_flight`: the number of trials that are granted
// but not yet measured. `batch`: the number of trials between two points of the curve.
void UpdateTask(const JobSnapshot& job, int64_t in_flight, int64_t batch, NetworkTaskState& task);
// Shows the published best of each task that has one. For a job that ends, because its results then
// agree with those of a lookup.
void ShowStoredBests(const JobSpec& spec, const JobServices& services, NetworkState& state);
// Adds an estimate if the latency has changed or another batch was measured. Keeps at most
// kMostEstimates.
inline constexpr size_t kMostEstimates = 512;
void AddEstimate(NetworkEstimate now, int64_t batch, NetworkState& state);
// Returns whether the last `patience` trials have improved the estimate by less than 0.1 %.
bool HasLostPatience(const NetworkState& state, int64_t patience);

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_NETWORK_NETWORK_JOB_H_
