#ifndef HONE_SERVER_TASK_JOB_H_
#define HONE_SERVER_TASK_JOB_H_

#include <atomic>

#include "server/task/confirm_phase.h"
#include "server/task/job_actor.h"
#include "server/task/job_task.h"
#include "server/task/search_phase.h"

namespace hone::task {

// One job: an actor that tunes one workload on one target. It searches (SearchPhase), then confirms
// the finalists and publishes the best (ConfirmPhase); a revalidation confirms only. Every public
// method may be called from any thread, returns at once, and takes effect by a message.
//
// A job survives the server: everything it needs to continue is in the store, and a Job made from a
// stored one replays its events first.
class Job final : public JobActor {
 public:
  // `snapshot`: only the id, spec and created_unix_ms of a new job; the last summary of a stored
  // one.
  Job(const JobServices& services, const JobOptions& options, JobSnapshot snapshot)
      : JobActor(services, options, std::move(snapshot)) {}

  // Begins, or continues after a restart.
  void Start();
  // Whether the first risky step of Start is over, or the job has ended or was suspended.
  bool HasBegun() const { return begun_ || IsSuspended(); }
  // Stops proposing. With `confirm`, what is under way finishes and the finalists are confirmed;
  // otherwise everything stops now.
  void Cancel(bool confirm);
  // Time has passed. Called a few times a second.
  void Tick();

 private:
  void BeforeSave() override { search_.LogTells(); }
  void OnEnd() override;

  // Messages and their parts.
  void Initialize();
  void OnChecked(const absl::Status& checked);  // the verdict of the preflight
  void Begin();
  void OnTick();
  void OnCancel(bool confirm);
  // Stops the search. What has begun may finish until `deadline`.
  void StopSearch(absl::Time deadline);

  std::atomic<bool> begun_{false};
  std::atomic<bool> tick_posted_{false};

  // The rest belongs to the strand.
  JobTask task_{*this};
  ConfirmPhase confirm_{*this, task_};
  SearchPhase search_{*this, task_, [this] { confirm_.Begin(search_.TakeScreened()); }};
  absl::Time drain_deadline_ = absl::InfiniteFuture();
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_JOB_H_
