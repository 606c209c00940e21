#ifndef HONE_SERVER_TASK_CONFIRM_PHASE_H_
#define HONE_SERVER_TASK_CONFIRM_PHASE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/task/confirmation.h"
#include "server/task/finalist.h"
#include "server/task/job_actor.h"
#include "server/task/job_task.h"
#include "server/task/spot_check.h"

namespace hone::task {

// The end of a job: the finalists are measured in rounds, and the best one is checked by another
// worker and published. If another job has published a best meanwhile, the winner is measured
// against that first. A revalidation is this phase alone, with finalists from the store. Belongs
// to the job's strand.
class ConfirmPhase {
 public:
  ConfirmPhase(JobActor& job, JobTask& task) : job_(job), task_(task) {}

  // Confirms the best of a search.
  void Begin(std::vector<Screened> screened);
  // Confirms the best stored candidates again, built anew.
  void BeginRevalidation();
  // Time has passed: submits again what the fleet had no room for, and goes on publishing.
  void Tick();
  // Frees the confirmation. Later messages change nothing.
  void Close() { confirmation_.reset(); }

 private:
  void StartRounds(Finalists finalists, const std::string& phase);
  // All finalists run on one device, because rounds must not compare devices: on the worker that
  // has most of their artifacts.
  void ChooseDevice();
  void NextRound();
  void Submit(int index);
  void OnRound(int index, const record::Record& record, const std::string& worker_id);
  void OnError(int index, const absl::Status& status);
  // The results over all rounds, of the one candidate of a decided space and of the default
  // schedule.
  void ReportOnly();
  void ReportDefault();
  void Publish();
  // Whether the incumbent, which won, stays published as it is.
  bool KeepsIncumbent() const;
  // Asks other workers about a finalist as long as its verdict is open.
  SpotCheck::Verdict Check(int index);
  void AskWorker(int index, SpotCheck& check, const std::string& worker);
  void OnSpotCheck(int index, const record::Record& record, const std::string& worker_id);
  // Another worker found the finalist wrong.
  void Discard(int index, const SpotCheck& check);
  void PublishFinalist(int index);
  void OnPublished(int index, const absl::StatusOr<record::Record>& record);
  // Another best was published since the incumbent was looked up: measures the winner against it.
  void ConfirmAgain(int winner, const absl::Status& conflict);
  // Ends the job with a published best.
  void Finish(const record::Record& best);
  // The end of a job that cannot publish anything.
  void Fail(const absl::Status& why);

  JobActor& job_;
  JobTask& task_;
  Finalists finalists_;
  int64_t last_stored_record_ = 0;  // when a revalidation began
  std::string device_;              // the worker that runs the finalists; "": any
  std::optional<Confirmation> confirmation_;
  std::vector<int> deferred_;        // finalists that the fleet had no room for
  std::vector<int> ranking_;         // finalists that may be published, best first
  std::map<int, SpotCheck> checks_;  // by finalist
  absl::Time artifact_deadline_ = absl::InfiniteFuture();
  int conflicts_ = 0;  // bests that others published meanwhile
  bool publishing_ = false;
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_CONFIRM_PHASE_H_
