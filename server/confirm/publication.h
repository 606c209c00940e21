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
#include "server/fleet/fleet.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"

namespace hone::job {

// Has a candidate built again from its trace, by another builder of the same version or else by a
// new process of the same builder, and compares the artifacts. A builder at fault, or one that
// somebody has changed, must not give users its own code. Belongs to the job's strand.
class BuildCheck {
 public:
  // `on_news`: called when Check may return something else. REQUIRES: `task` is a member of `job`.
  BuildCheck(JobActor& job, JobTask& task, std::function<void()> on_news)
      : job_(job), task_(task), on_news_(std::move(on_news)) {}

  enum class State { kOpen, kSame, kRefused };
  // Returns the state, and asks for the build if that was not done yet for this artifact. Called
  // periodically while it is open. kRefused: the artifacts differ, or it was not built again in
  // time; why() says which.
  State Check(const Finalist& built);
  const std::string& why() const { return why_; }

 private:
  void Ask(const std::string& worker);
  void OnBuilt(int asked, const absl::StatusOr<fleet::WorkResult>& result);

  JobActor& job_;
  JobTask& task_;
  const std::function<void()> on_news_;
  Finalist built_;
  State state_ = State::kOpen;
  std::string why_;
  std::string built_by_;
  std::string worker_;             // that was asked last
  std::vector<std::string> slow_;  // workers that did not answer in time
  bool waits_ = false;             // for an answer
  int attempts_ = 0;               // for this artifact
  int asked_ = 0;                  // number of the last request
  absl::Time began_, asked_at_;
};

// Collects the opinions of other workers on a finalist before it is published, because a broken or
// dishonest worker must not publish a wrong result. The workers are asked one after the other. One
// that agrees is enough; two that disagree reject the finalist.
//
// Pure logic: no time, no I/O. Not thread-safe.
class SpotCheck {
 public:
  // `worker` confirmed the finalist, with this steady latency.
  SpotCheck(std::string worker, double latency_ns)
      : asked_{std::move(worker)}, claimed_(latency_ns) {}

  enum class Verdict { kOpen, kConfirmed, kRejected };
  Verdict verdict() const { return verdict_; }
  // The finding of the first worker that disagreed.
  const std::string& objection() const { return objection_; }
  const std::string& claimant() const { return asked_[0]; }
  // Returns the worker that disagreed, if another one has agreed with the claimant since; otherwise
  // "".
  std::string Outvoted() const;

  // The claimant and the workers that were asked.
  const std::vector<std::string>& asked() const { return asked_; }
  bool IsWaiting(absl::Time now) const { return now < deadline_; }
  // Returns whether the last worker did not answer in time.
  bool IsLate(absl::Time now) const {
    return deadline_ != absl::InfinitePast() && now >= deadline_;
  }
  void Ask(std::string worker, absl::Time deadline);
  // Does without the answer of the worker that was asked last, so that another one can be asked.
  void StopWaiting() { deadline_ = absl::InfinitePast(); }
  // Adds the answer of the worker that was asked last. An answer after the deadline has no effect.
  void Report(absl::Time now, const std::string& worker, const record::MeasureResult& result);
  // Decides with the answers so far, because no other worker will answer. Without answers, the
  // claimant is believed.
  void Close();

 private:
  std::vector<std::string> asked_;
  const double claimed_;
  absl::Time deadline_ = absl::InfinitePast();  // for the pending answer
  Verdict verdict_ = Verdict::kOpen;
  std::string objector_, objection_;
};

// Shows the best of the job's own candidates: the first one in the ranking, or else the fastest
// that dropped out.
void ReportOwnBest(JobActor& job, const JobTask& task, const Finalists& finalists,
                   const Confirmation& results, const std::vector<int>& ranking);

// Publishes the winner of a confirmation and ends the job: waits for the winner's artifact, has it
// built again from its trace, has another worker check it, and stores and publishes its record. The
// record of an incumbent that wins stays as it is, unless it is outdated. If the best is pinned,
// the winner is stored and not published. Belongs to the job's strand.
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
  void EndWithIncumbent();

 private:
  // Ends the job with a published best.
  void Finish(const record::Record& best);
  // Returns whether the incumbent won and its published record stays unchanged.
  bool KeepsIncumbent(int index) const;
  // Returns what happened in the rounds, for the job's note; "" if there is nothing to say. The
  // incumbent stays only because this run could not be confirmed, or one of these three:
  std::string NoteOfRounds() const;
  // The fastest candidate of the search could not be confirmed.
  std::string NoteUnconfirmedFastest() const;
  // The incumbent is replaced and was slower than its record when it was measured again.
  std::string NoteOverratedIncumbent() const;
  // The job's own best is slower than the leader that the search has shown.
  std::string NoteSlowerThanLeader() const;
  // Returns the verdict of other workers on a finalist. Asks the next worker while it is open.
  SpotCheck::Verdict Check(int index);
  void AskWorker(int index, SpotCheck& check, const std::string& worker);
  void OnSpotCheck(int index, const record::Record& record, const std::string& worker_id);
  // Drops a finalist that other workers rejected.
  void Discard(int index, const SpotCheck& check);
  // Compares the finalist's artifact with another build, unless it is published already. Drops the
  // finalist if they differ.
  BuildCheck::State CheckBuild(int index);
  // Drops a finalist whose artifact is not published, without a judgement of its workers.
  void Withhold(int index, const std::string& why);
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
  std::map<int, SpotCheck> checks_;   // by finalist
  std::map<int, BuildCheck> builds_;  // the same
  std::string withheld_;              // why the last finalist was not published
  absl::Time artifact_deadline_ = absl::InfiniteFuture();
  bool publishing_ = false;
};

}  // namespace hone::job

#endif  // HONE_SERVER_CONFIRM_PUBLICATION_H_
