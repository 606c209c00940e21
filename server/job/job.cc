#include "server/job/job.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/host_lock.h"
#include "common/base/seconds_text.h"
#include "server/job/actor/executor.h"
#include "server/job/actor/job_actor.h"
#include "server/job/actor/job_types.h"
#include "server/job/search/task_search.h"

namespace hone::job {
namespace {

// The limit for a revalidation, including the builds of its finalists, if the request has none.
constexpr absl::Duration kRevalidation = absl::Minutes(2);

// The measurements that have begun when a job is cancelled or told to confirm may take this part of
// the time that is left. The rest is for the confirmation.
constexpr double kDrainShare = 0.5;

}  // namespace

void Job::Allow(int64_t candidates) {
  Post([this, candidates] {
    if (HasEnded() || candidates <= state().allowance) return;
    state().unmeasured += candidates - state().allowance;
    state().allowance = candidates;
    if (HasBegun()) search_.Pump();
  });
}

void Job::Confirm(ConfirmRequest request) {
  Post([this, request] {
    parent_cancelled_ = parent_cancelled_ || request.cancelled;
    brief_ = request.brief;
    OnConfirm(request.limit);
  });
}

void Job::Propose(Proposals proposals, ProposalAnswer::Done done) {
  Post(
      [this, proposals = std::move(proposals), answer = ProposalAnswer(std::move(done))]() mutable {
        OnProposed(std::move(proposals), std::move(answer));
      });
}

absl::Status Job::CheckTakesProposals() const {
  if (HasEnded()) {
    const bool can_resume = state().state != JobState::kDone && spec().parent.empty();
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", id(), " is ", JobStateName(state().state), "; propose for another job of its ",
        "workload", can_resume ? absl::StrCat(", or after \"hone jobs resume ", id(), "\"") : ""));
  }
  if (spec().revalidate > 0 || spec().is_check || task_.IsDecided()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "job ", id(),
        spec().revalidate > 0 ? " revalidates stored candidates" : " has one schedule",
        " and does not search; propose for a job of \"hone tune\" without a given schedule"));
  }
  if (state().state == JobState::kConfirming || state().cancelled || confirm_asked_ ||
      search_.IsStopping()) {
    return absl::FailedPreconditionError(
        absl::StrCat("job ", id(), " no longer searches: it confirms its best candidates; propose ",
                     "for another job of its workload"));
  }
  return absl::OkStatus();
}

void Job::OnProposed(Proposals proposals, ProposalAnswer answer) {
  if (absl::Status refused = CheckTakesProposals(); !refused.ok()) return answer(refused);
  if (!HasStarted()) {  // nothing would look whether the caller still waits
    return answer(absl::UnavailableError(absl::StrCat(
        "job ", id(), " continues once other jobs have begun; propose again in a moment")));
  }
  if (!HasBegun()) {
    early_.emplace_back(std::move(proposals), std::move(answer));
    return;
  }
  ReadNext(std::make_shared<Reading>(std::move(proposals), std::move(answer)));
}

void Job::ReadNext(std::shared_ptr<Reading> reading) {
  // Reading takes too long for the strand. Other work has its turn after each trace.
  services().executor->Schedule([this, self = shared_from_this(), spaces = task_.shared_spaces(),
                                 reading = std::move(reading)]() mutable {
    absl::Status status = reading->proposals.CheckCaller();
    if (MustStop()) status = absl::UnavailableError("the job is ending");
    if (!status.ok()) return reading->answer(std::move(status));
    {
      const HostShare share(options().respect_timing_lock);
      const std::string& trace = reading->proposals.traces[reading->read.size()];
      reading->read.push_back(ReadProposal(trace, *spaces, spec().tolerance));
    }
    if (reading->read.size() < reading->proposals.traces.size()) {
      return ReadNext(std::move(reading));
    }
    Post([this, reading = std::move(reading)] {
      ProposalAnswer& answer = reading->answer;
      if (absl::Status refused = CheckTakesProposals(); !refused.ok()) return answer(refused);
      SetDoing("taking proposals of another program");
      search_.Accept(reading->proposals, std::move(reading->read), std::move(answer));
    });
  });
}

void Job::DropAbandoned() {
  std::vector<std::pair<Proposals, ProposalAnswer>> kept;
  for (auto& [proposals, answer] : std::exchange(early_, {})) {
    if (absl::Status gone = proposals.CheckCaller(); !gone.ok()) {
      answer(std::move(gone));
    } else {
      kept.emplace_back(std::move(proposals), std::move(answer));
    }
  }
  early_ = std::move(kept);
}

bool Job::IsOrphan() const {
  if (spec().parent.empty()) return false;
  const absl::StatusOr<store::JobRow> parent = services().store->GetJob(spec().parent);
  if (!parent.ok()) return absl::IsNotFound(parent.status());
  const absl::StatusOr<JobState> state = JobStateFromName(parent->state);
  return state.ok() && job::HasEnded(*state);
}

void Job::Initialize() {
  if (HasEnded()) return;  // cancelled while it waited for its turn
  if (IsOrphan()) return End(JobState::kCancelled);
  if (const absl::Status crashes = CheckCrashes(); !crashes.ok()) {
    return End(JobState::kFailed, crashes);
  }
  state().state = JobState::kRunning;
  SetPhase({PhaseKind::kMakingSpaces});
  ShowState();
  Save();
  EnterStep(kMakingSpaces, [this] { Begin(); });
}

void Job::Begin() {
  SetDoing(kMakingSpaces);
  if (absl::Status status = task_.Open([this] { return CheckStop(); }); !status.ok()) {
    if (absl::IsCancelled(status)) return OnCancel(/*confirm=*/false);
    return End(JobState::kFailed, status);
  }
  if (spec().revalidate > 0) {
    LeaveStep();
    SetBegun();
    LimitConfirmation(kRevalidation);
    return confirm_.BeginRevalidation();
  }
  SetDoing("resuming the search");
  if (absl::Status status = search_.Restore(); !status.ok()) {
    return End(JobState::kFailed, status);
  }
  LeaveStep();
  ShowState();  // the parent reads the state of a child once the child has begun
  SetBegun();
  for (auto& [proposals, answer] : std::exchange(early_, {})) {
    Post([this, proposals = std::move(proposals), answer = std::move(answer)]() mutable {
      OnProposed(std::move(proposals), std::move(answer));
    });
  }
  if (!state().cancelled && !confirm_asked_ && !search_.IsStopping()) return search_.Begin();
  // The job was cancelled, told to confirm or out of time before it began here. The results of an
  // earlier server are confirmed.
  StopSearch(Steady());
  search_.Pump();
}

absl::Status Job::CheckStop() const {
  // What a job has measured under an earlier server is still confirmed.
  if (!HasBegun() && state().trials > 0) return absl::OkStatus();
  if (MustStop()) return absl::CancelledError("the job is being cancelled");
  const bool proposes_first = HasBegun() && !search_.HasProposed();
  if (proposes_first || TimeLeft() > absl::ZeroDuration()) return absl::OkStatus();
  return absl::DeadlineExceededError(
      absl::StrCat("the job's time of ", SecondsText(spec().max_time), " was over while ",
                   kMakingSpaces, ", so nothing was measured; give it more time"));
}

void Job::OnSearched() {
  Found found = search_.TakeFound();
  const bool measured = state().trials > 0 || state().default_schedule.has_value();
  if (parent_cancelled_ && !measured) return End(JobState::kCancelled);
  if (spec().unpublished) return deliver_.Begin(std::move(found.screened));
  LimitConfirmation(ConfirmationLimit(Wall(), state().cancelled));
  // One process does not suffice to replace a best that was confirmed in several.
  const bool brief = brief_ && absl::IsNotFound(task_.PublishedBest().status());
  confirm_.Begin(std::move(found), brief ? kBriefConfirmation : options().confirmation);
}

void Job::LimitConfirmation(absl::Duration limit) {
  // A user who cancels a job does not want to wait for the rest of its time.
  const bool is_limited = TimeLeft() < absl::InfiniteDuration() && !state().cancelled;
  if (!is_limited) SetDeadline(Steady() + limit);
}

void Job::BeforeSave() {
  search_.LogTells();
  if (HasEnded()) search_.ShowUnconfirmed();
}

void Job::StopSearch(absl::Time deadline) {
  search_.Stop();
  drain_deadline_ = deadline;
}

void Job::OnCancel(bool confirm) {
  if (HasEnded()) return;
  // If its best is being stored, the job ends with it, because that best may be published already.
  if (!confirm && !confirm_.EndWhenPublished()) {
    if (!HasBegun() || state().state != JobState::kRunning) return End(JobState::kCancelled);
    search_.BeginClose();
    return Post([this] { End(JobState::kCancelled); });  // after results that are already stored
  }
  SetCancelled();
  if (!confirm) return;
  // There is nothing to confirm, and making the design spaces may take long.
  if (!HasBegun() && state().trials == 0) return End(JobState::kCancelled);
  Save();
  ShowState();
  OnConfirm(HasBegun() ? ConfirmationLimit(Wall(), /*cancelled=*/true) : absl::InfiniteDuration());
}

void Job::OnConfirm(absl::Duration limit) {
  if (HasEnded()) return;
  SetDeadline(Steady() + limit);
  confirm_asked_ = true;
  // A job that has not begun stops when it begins.
  if (!HasBegun() || state().state != JobState::kRunning) return;
  // Without a result, there is nothing to confirm.
  const bool found = state().cancelled || state().outcomes.contains(record::Outcome::kOk);
  const absl::Duration drain =
      std::min(options().drain_limit, found ? TimeLeft() * kDrainShare : UntilGiveUp());
  if (search_.IsStopping()) {
    drain_deadline_ = std::min(drain_deadline_, Steady() + drain);
    return;
  }
  StopSearch(Steady() + drain);
  services().fleet->CancelWaiting(id());
  search_.Pump();
}

absl::Duration Job::UntilGiveUp() const {
  return std::max(TimeLeft() + kFirstResultGrace,
                  search_.late_submission() + kLateResultGrace - Steady());
}

bool Job::SearchIsLate(absl::Duration reserved) const {
  if (!HasBegun()) return false;  // see CheckStop
  const absl::Duration left = TimeLeft();
  if (left > reserved) return false;
  // Without proposals, an external job confirms the default schedule.
  const bool found = state().outcomes.contains(record::Outcome::kOk) ||
                     (spec().strategy == kExternalStrategy && state().default_schedule.has_value());
  if (found || !spec().parent.empty()) return true;
  // There is nothing to confirm, so the rest of the time belongs to the search.
  if (left > absl::ZeroDuration()) return false;
  if (!search_.HasProposed() && !search_.IsStopping()) return false;
  const bool waits = state().trials == 0 && WorkerAnswers(*this);
  return !waits || UntilGiveUp() <= absl::ZeroDuration();
}

void Job::OnTick() {
  UpdateWall();
  DropAbandoned();
  const bool searching = state().state == JobState::kRunning;
  // A cancelled job does not wait until a worker takes its work.
  if (state().cancelled && !WorkerAnswers(*this)) {
    if (searching) drain_deadline_ = std::min(drain_deadline_, Steady());
    SetDeadline(Steady());
  }
  const absl::Duration reserved = search_.ReservedTime();
  if (searching && !search_.IsStopping() && SearchIsLate(reserved)) {
    const absl::Duration drain = std::min({options().drain_limit, reserved / 4, UntilGiveUp()});
    StopSearch(Steady() + drain);
    services().fleet->CancelWaiting(id());
  }
  if (searching && Steady() >= drain_deadline_) {
    drain_deadline_ = absl::InfiniteFuture();
    services().fleet->CancelJob(id());
  }
  if (searching) {
    search_.Tick();
    if (!HasEnded() && search_.IsIdle()) return;  // nothing changes until more is allowed
  } else {
    const bool delivers = spec().unpublished && spec().revalidate == 0;
    delivers ? deliver_.Tick() : confirm_.Tick();
  }
  if (!HasEnded() && SaveIsDue()) Save();
  if (ShowIsDue()) ShowState();
}

void Job::OnEnd() {
  SetBegun();
  search_.Close();
  confirm_.Close();
  for (auto& [proposals, answer] : std::exchange(early_, {})) {
    answer(absl::FailedPreconditionError(
        absl::StrCat("job ", id(), " has ended; \"hone jobs show ", id(), "\" says why")));
  }
}

}  // namespace hone::job
