#ifndef HONE_SERVER_CONFIRM_PUBLICATION_H_
#define HONE_SERVER_CONFIRM_PUBLICATION_H_

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/record/record.h"
#include "server/confirm/confirmation.h"
#include "server/confirm/finalist.h"
#include "server/confirm/spot_check.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"

namespace hone::job {

// Shows the best of the job's own candidates: the first one in the ranking, or else the fastest
// that dropped out.
void ReportOwnBest(JobActor& job, const JobTask& task, const Finalists& finalists,
                   const Confirmation& results, const std::vector<int>& ranking);

// Publishes the winner of a confirmation and ends the job: waits for the winner's artifact, has
// another worker check it, and stores and publishes its record. The record of an incumbent that
// wins stays as it is, unless it is outdated. If the best is pinned, the winner is stored and not
// published. Belongs to the job's strand.
class Publication {
 public:
  // `on_conflict` is called with the winner if another job has published a best since the incumbent
  // was looked up.
  Publication(JobActor& job, JobTask& task, Finalists& finalists,
              std::function<void(int winner, const absl::Status& conflict)> on_conflict)
      : job_(job), task_(task), finalists_(finalists), on_conflict_(std::move(on_conflict)) {}

  // Begins with the finalists that may be published, best first. `results` must outlive the job's
  // confirmation. `rematch`: the winner was measured against the best of another job.
  // REQUIRES: the ranking is not empty.
  void Begin(std::vector<int> ranking, const Confirmation& results, bool rematch);
  // Whether it has begun and was not closed.
  bool IsOpen() const { return !ranking_.empty(); }
  // Whether a best is being stored. It may be published even if the job ends now.
  bool IsPublishing() const { return publishing_; }
  // Called periodically while it is open.
  void Continue();
  void Close() { ranking_.clear(); }
  // Ends the job with the incumbent, or with a best that another job has published meanwhile.
  void FinishWithIncumbent();

 private:
  // Ends the job with a published best.
  void Finish(const record::Record& best);
  // Returns whether the incumbent won and its published record stays unchanged.
  bool KeepsIncumbent() const;
  // Adds what happened in the confirmation to the job's note, which may have one of the search.
  void AddNotes();
  // Sets the note if the job's own best is slower than the leader that the search has shown.
  void NoteSlowerThanLeader();
  // Set the note if the incumbent stays only because this run could not be confirmed, or if
  // the fastest candidate of the search could not be confirmed.
  void NoteDisturbance();
  void NoteUnconfirmedFastest();
  // Sets it if the incumbent is replaced and was slower than its record when it was measured again.
  void NoteOverratedIncumbent();
  // Returns the verdict of other workers on a finalist. Asks the next worker while it is open.
  SpotCheck::Verdict Check(int index);
  void AskWorker(int index, SpotCheck& check, const std::string& worker);
  void OnSpotCheck(int index, const record::Record& record, const std::string& worker_id);
  // Drops a finalist that other workers rejected.
  void Discard(int index, const SpotCheck& check);
  void PublishFinalist(int index);
  // Ends the job because no artifact of a finalist arrived.
  void EndUnpublished();
  void OnStored(int index, const record::Record& record);
  void OnPublished(int index, const absl::StatusOr<record::Record>& record);

  JobActor& job_;
  JobTask& task_;
  Finalists& finalists_;
  const std::function<void(int winner, const absl::Status& conflict)> on_conflict_;
  std::vector<int> ranking_;  // finalists that may be published, best first
  const Confirmation* results_ = nullptr;
  bool rematch_ = false;
  std::map<int, SpotCheck> checks_;  // by finalist
  absl::Time artifact_deadline_ = absl::InfiniteFuture();
  bool publishing_ = false;
};

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_PUBLICATION_H_
