#ifndef HONE_SERVER_CONFIRM_CONFIRM_PHASE_H_
#define HONE_SERVER_CONFIRM_CONFIRM_PHASE_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/confirm/confirmation.h"
#include "server/confirm/finalist.h"
#include "server/confirm/publication.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"

namespace hone::job {

// The last phase of a job. The finalists are measured in rounds; then the best one is published
// (publication.h). If another job has published a best meanwhile, the winner is first measured
// against that one. A revalidation has only this phase, with finalists from the store.
//
// A round that would end after the job's time limit is not begun, and a round that runs over it is
// cut short. If no finalist has a result by then, the job waits for the first one. A job that was
// cancelled, or whose time the user limited, waits a few seconds at most, and does not wait if no
// worker can measure it.
//
// Belongs to the job's strand.
class ConfirmPhase {
 public:
  ConfirmPhase(JobActor& job, JobTask& task)
      : job_(job),
        task_(task),
        options_(job.options().confirmation),
        publication_(job, task, finalists_, [this](int winner, const absl::Status& conflict) {
          ConfirmAgain(winner, conflict);
        }) {}

  // Confirms the best candidates of a search.
  void Begin(Found found, const ConfirmationOptions& options);
  // Builds the best stored candidates again and confirms them.
  void BeginRevalidation();
  // Called periodically. Resubmits work that the fleet had no room for, and continues publishing.
  void Tick();
  // If a best is being stored, returns true, and the job ends with it in a moment, without
  // measuring anything else.
  bool EndWhenPublished();
  // Frees the confirmation. Later messages change nothing.
  void Close() { confirmation_.reset(); }

 private:
  void StartRounds(Finalists finalists, PhaseKind phase);
  // Adds the incumbent's published result as an earlier process, unless it was disturbed or
  // measured on other inputs.
  void AddStoredIncumbent();
  // Chooses the worker that has most of the finalists' artifacts. All finalists run on one device,
  // because rounds must not compare devices.
  void ChooseDevice();
  void NextRound();
  void EndRounds();
  void ShowRound();
  void Submit(int index);
  // Ends an incomplete round when the time is over.
  void CutLateRound();
  // Returns whether no finalist with a result could be published, because no worker is known to
  // have its artifact. After a restart of the server, the first round builds the artifacts again.
  bool LacksArtifacts() const;
  // Returns why the job, whose time is over, should not wait for the first result of a finalist; ""
  // if it should.
  std::string WhyNotWait() const;
  // End a job without a finalist that could be published.
  void EndUnconfirmed();
  void EndUnconfirmed(const std::string& why);
  // Moves the default schedule to the front if it is faster than the winner and was measured in
  // enough processes: a published best is never slower than the default schedule.
  void PreferFasterDefault(std::vector<int>& ranking);
  // Moves a finalist to the front if all of its processes were disturbed, and it was clearly faster
  // than the winner even so: a disturbance only adds time.
  void PreferFasterDisturbed(std::vector<int>& ranking);
  void OnRound(int index, const record::Record& record, const std::string& worker_id);
  void OnError(int index, const absl::Status& status);
  // Sets the number of trials of a revalidation: the candidates that were confirmed.
  void CountConfirmed();
  // Reports the combined result of the only candidate of a decided space.
  void ReportOnly();
  // Reports that of the default schedule. If this job did not confirm it undisturbed, an earlier
  // job's result is reported instead, unless the default schedule is the best in the ranking.
  void ReportDefault(const std::vector<int>& ranking);
  // Measures the winner against a best that was published since the incumbent was looked up.
  void ConfirmAgain(int winner, const absl::Status& conflict);

  JobActor& job_;
  JobTask& task_;
  ConfirmationOptions options_;
  Finalists finalists_;
  std::optional<record::Record> screened_default_;  // if it works
  std::optional<record::Record> known_default_;     // see Found
  std::string device_;                              // the worker that runs the finalists; "": any
  std::optional<Confirmation> confirmation_;
  struct Waiting {
    int finalist;
    absl::Time until;
  };
  std::vector<Waiting> waiting_;  // for room in the fleet, or for a quieter machine
  absl::Time round_began_;
  int in_round_ = 0;            // finalists of the current round
  int reported_ = 0;            // finalists of the round that have run
  int disturbed_in_round_ = 0;  // those of them without a result, because of other work
  int cuts_ = 0;                // rounds that were cut; their late results are ignored
  int conflicts_ = 0;           // bests that other jobs published meanwhile
  bool ends_ = false;           // see EndWhenPublished
  Publication publication_;
};

// The last phase of an unpublished job. The fastest screened candidate is the result, without a
// confirmation, and its artifact is fetched from the worker and compared with another build. If
// that worker is gone, the candidate is built again. Belongs to the job's strand.
class DeliverPhase {
 public:
  DeliverPhase(JobActor& job, JobTask& task)
      : job_(job), task_(task), build_check_(job, task, [this] { Tick(); }) {}

  void Begin(std::vector<Screened> screened);
  // Called periodically. After Begin, ends the job once the artifact has arrived.
  void Tick();

 private:
  // Builds and measures the candidate again, because no worker has its artifact any more.
  void Rebuild();

  JobActor& job_;
  JobTask& task_;
  Screened best_;
  bool rebuilt_ = false;
  absl::Time deadline_ = absl::InfiniteFuture();
  BuildCheck build_check_;
};

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_CONFIRM_PHASE_H_
