#ifndef HONE_SERVER_JOB_JOB_H_
#define HONE_SERVER_JOB_JOB_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "server/confirm/confirm_phase.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_task.h"
#include "server/job/search/proposals.h"
#include "server/job/search/task_search.h"

namespace hone::job {

// A job: an actor that tunes one workload on one target. It searches (SearchPhase), then confirms
// the finalists and publishes the best (ConfirmPhase); a revalidation only confirms. An unpublished
// job fetches the artifact of its best instead (DeliverPhase). Every public method may be called
// from any thread, returns at once, and takes effect through a message.
//
// A child, that is, the job of a task of networks (JobSpec::parent), proposes only as many
// candidates as it is allowed. Then it waits until it is allowed more or told to confirm.
//
// A job survives a restart of the server: everything it needs to continue is in the store, and a
// Job made from a stored one first replays its events.
class Job final : public JobActor {
 public:
  // `snapshot` has only the id, spec and created_unix_ms if the job is new; otherwise it is the
  // last stored summary.
  Job(const JobServices& services, const JobOptions& options, JobSnapshot snapshot)
      : JobActor(services, options, std::move(snapshot)) {}

  // Raises the number of candidates that the job may propose. A lower number changes nothing.
  void Allow(int64_t candidates);
  struct ConfirmRequest {
    absl::Duration limit;
    bool cancelled = false;  // a user cancelled the parent, so a child without measurements is
                             // cancelled instead of confirmed
    bool brief = false;      // kBriefConfirmation
  };
  // Stops proposing and confirms the finalists within the limit.
  void Confirm(ConfirmRequest request);
  // Leaves out the default schedule until the job is started again. REQUIRES: the job was not
  // started.
  void SkipDefault() { search_.SkipDefault(); }
  // Reads schedules that another program proposes, on the executor, and adds those that can be
  // measured to the search. `done` runs once they are durable; its verdicts say what became of
  // each. If the job makes its design spaces, they wait until it has them. FailedPrecondition: the
  // job does not search, or no longer. ResourceExhausted: too many programs propose for it.
  // Unavailable: the server is shutting down, or the job has to wait for others before it
  // continues.
  void Propose(Proposals proposals, ProposalAnswer::Done done);

 private:
  void BeforeSave() override;
  void OnEnd() override;
  void OnSuspended() override { early_.clear(); }
  void Initialize() override;
  void OnTick() override;
  void OnCancel(bool confirm) override;

  // Messages, and functions that they call.
  void Begin();
  // Whether to go on with long work on the strand. Cancelled: the job was cancelled, or the server
  // is shutting down. DeadlineExceeded: its time is over; its first candidates are proposed and
  // measured nevertheless, once there are design spaces.
  absl::Status CheckStop() const;
  // Returns whether this is a child whose parent has ended.
  bool IsOrphan() const;
  void OnConfirm(absl::Duration limit);
  void OnProposed(Proposals proposals, ProposalAnswer answer);
  // What is read of a call so far.
  struct Reading {
    Proposals proposals;
    ProposalAnswer answer;
    std::vector<GivenCandidate> read;
  };
  // Reads the next trace, and then the others or the call's end.
  void ReadNext(std::shared_ptr<Reading> reading);
  // Answers calls that nobody waits for any longer.
  void DropAbandoned();
  // FailedPrecondition: the job takes no proposals; the message says why, and what to do.
  absl::Status CheckTakesProposals() const;
  void OnSearched();
  // Returns the time until the job stops to wait for its first result.
  absl::Duration UntilGiveUp() const;
  // Returns whether the search must end now to leave the `reserved` time for the confirmation.
  bool SearchIsLate(absl::Duration reserved) const;
  // Limits the time of the confirmation, unless the job has a time limit and was not cancelled.
  void LimitConfirmation(absl::Duration limit);
  // Stops the search. Builds and runs that have begun may finish until `deadline`.
  void StopSearch(absl::Time deadline);

  // The following members are used only on the strand.
  JobTask task_{*this};
  ConfirmPhase confirm_{*this, task_};
  DeliverPhase deliver_{*this, task_};
  SearchPhase search_{*this, task_, [this] { OnSearched(); }};
  absl::Time drain_deadline_ = absl::InfiniteFuture();
  // Proposals that came before the job had design spaces.
  std::vector<std::pair<Proposals, ProposalAnswer>> early_;
  bool confirm_asked_ = false;
  bool parent_cancelled_ = false;  // see ConfirmRequest
  bool brief_ = false;             // see ConfirmRequest
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_JOB_H_
