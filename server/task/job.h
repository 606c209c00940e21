#ifndef HONE_SERVER_TASK_JOB_H_
#define HONE_SERVER_TASK_JOB_H_

#include <atomic>

#include "server/task/confirm_phase.h"
#include "server/task/deliver_phase.h"
#include "server/task/job_actor.h"
#include "server/task/job_task.h"
#include "server/task/search_phase.h"

namespace hone::task {

// A job: an actor that tunes one workload on one target. It searches (SearchPhase), then confirms
// the finalists and publishes the best (ConfirmPhase); a revalidation only confirms. An unpublished
// job fetches the artifact of its best instead (DeliverPhase). Every public method may be called
// from any thread, returns at once, and takes effect through a message.
//
// A job survives a restart of the server: everything it needs to continue is in the store, and a
// Job made from a stored one first replays its events.
class Job final : public JobActor {
 public:
  // `snapshot` has only the id, spec and created_unix_ms if the job is new; otherwise it is the
  // last stored summary.
  Job(const JobServices& services, const JobOptions& options, JobSnapshot snapshot)
      : JobActor(services, options, std::move(snapshot)) {}

  // Begins, or continues after a restart.
  void Start();
  // Returns whether the first risky step of Start is over, or the job has ended or was suspended.
  bool HasBegun() const { return begun_ || IsSuspended(); }
  // Stops proposing. With `confirm`, work in progress finishes and the finalists are confirmed;
  // otherwise everything stops at once.
  void Cancel(bool confirm);
  // Called a few times a second.
  void Tick();

 private:
  void BeforeSave() override { search_.LogTells(); }
  void OnEnd() override;

  // Messages, and functions that they call.
  void Initialize();
  void OnChecked(const absl::Status& checked);  // the verdict of the preflight
  void Begin();
  void OnTick();
  void OnSearched();
  void OnCancel(bool confirm);
  // Stops the search. Builds and runs that have begun may finish until `deadline`.
  void StopSearch(absl::Time deadline);

  std::atomic<bool> begun_{false};
  std::atomic<bool> tick_posted_{false};

  // The following members are used only on the strand.
  JobTask task_{*this};
  ConfirmPhase confirm_{*this, task_};
  DeliverPhase deliver_{*this, task_};
  SearchPhase search_{*this, task_, [this] { OnSearched(); }};
  absl::Time drain_deadline_ = absl::InfiniteFuture();
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JOB_H_
