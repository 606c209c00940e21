#include "server/job/actor/job_actor.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/seconds_text.h"
#include "server/job/actor/executor.h"
#include "server/job/actor/job_codec.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

// A job is not resumed automatically if servers crashed this often in its risky steps.
constexpr int kMostCrashes = 2;
// Workers may need this long to call a server that has just started.
constexpr absl::Duration kTimeToCall = absl::Seconds(5);
constexpr absl::Duration kWorkerCheckInterval = absl::Seconds(1);

}  // namespace

JobActor::JobActor(const JobServices& services, const JobOptions& options, JobSnapshot snapshot)
    : services_(services),
      options_(options),
      id_(snapshot.id),
      spec_(snapshot.spec),
      strand_(services.executor),
      state_(std::move(snapshot)),
      resumed_(services.SteadyNow()),
      earlier_wall_(state_.wall),
      earlier_after_cancel_(state_.after_cancel),
      next_worker_check_(resumed_ + kTimeToCall) {
  if (state_.risky_step.has_value()) {  // from an earlier server, and already counted
    crashed_while_ = state_.risky_step->name;
    state_.risky_step.reset();
  }
  if (state_.cancelled) SetCancelled();  // under an earlier server
  shown_ = std::make_shared<const JobSnapshot>(state_);
}

void JobActor::Start() {
  Post([this] {
    started_ = true;
    Initialize();
  });
}

void JobActor::Cancel(bool confirm) {
  if (!confirm) must_end_ = true;
  cancel_asked_ = true;
  Post([this, confirm] { OnCancel(confirm); });
}

bool JobActor::WorkersMayCall() const { return Steady() < resumed_ + kTimeToCall; }

void JobActor::SetCancelled() {
  state_.cancelled = true;
  if (!wall_at_cancel_.has_value()) wall_at_cancel_ = Wall();
}

void JobActor::UpdateWall() {
  state_.wall = Wall();
  if (!wall_at_cancel_.has_value()) return;
  state_.after_cancel = earlier_after_cancel_ + (state_.wall - *wall_at_cancel_);
}

void JobActor::Tick() {
  if (tick_posted_.exchange(true)) return;  // the strand is busy; one tick is enough
  Post([this] {
    tick_posted_ = false;
    if (WaitsForSpace()) return;
    if (!HasEnded()) {
      CheckWorkers();
      if (started_ && !HasEnded()) OnTick();
      return;
    }
    // Retries to store the last state if this failed. The job cannot be resumed until then.
    if (!over_ && SaveIsDue()) Save();
  });
}

bool JobActor::WaitsForSpace() {
  const absl::Status space = services_.store->CheckSpace();
  const absl::Time now = Steady();
  if (full_at_.has_value()) {
    const absl::Duration waited = now - *full_at_;
    resumed_ += waited;
    deadline_ += waited;
    if (wait_.has_value()) wait_->end += waited;
  }
  full_at_.reset();
  if (!space.ok()) full_at_ = now;
  if (space.ok() != why_full_.empty()) {  // later attempts may have other messages
    why_full_ = std::string(space.message());
    ShowState();
  }
  return !space.ok();
}

void JobActor::CheckWorkers() {
  if (Steady() < next_worker_check_) return;
  next_worker_check_ = Steady() + kWorkerCheckInterval;
  std::string reason = WhyNoWorker(*this);
  if (reason.empty()) {
    wait_.reset();
    reason = WhyWorkIsSilent(*this);
  } else if (spec_.parent.empty()) {  // a child waits as long as its parent
    if (!wait_) {
      const absl::Duration left = TimeLeft();
      // Without a limit, only what is already confirmed can end the job earlier.
      const bool limited = spec_.max_time > absl::ZeroDuration() && left < options_.wait_limit;
      wait_ = Wait{Steady() + options_.wait_limit,
                   limited ? absl::StrCat("the job's time is over at ", TimeText(Now() + left))
                           : absl::StrCat("the job fails if this lasts until ",
                                          TimeText(Now() + options_.wait_limit))};
    }
    if (Steady() >= wait_->end) {
      return Fail(absl::FailedPreconditionError(
          absl::StrCat("it waited ", SecondsText(options_.wait_limit), " for a worker: ", reason)));
    }
    absl::StrAppend(&reason, "; ",
                    state_.cancelled ? "the job is being cancelled" : wait_->end_text);
  }
  silent_work_ = reason.empty() ? SilentWork(*this) : JobPhase();
  if (reason == state_.wait_reason) return;
  state_.wait_reason = std::move(reason);
  ShowState();
}

void JobActor::Post(absl::AnyInvocable<void() &&> message) {
  strand_.Post([self = shared_from_this(), message = std::move(message)]() mutable {
    if (self->suspended_) return;
    self->doing_ = "searching";
    const absl::Status threw = CatchExceptions([&] { std::move(message)(); });
    if (!threw.ok()) self->OnException(threw);
  });
}

void JobActor::Suspend() {
  absl::MutexLock lock(&save_mutex_);
  SetSuspended();
}

void JobActor::SetSuspended() {
  suspended_ = true;
  strand_.Post([self = shared_from_this()] { self->OnSuspended(); });
}

void JobActor::SuspendForShutdown() {
  absl::MutexLock lock(&save_mutex_);
  SetSuspended();
  if (must_end_ && !over_) {
    // The strand may have been too busy to end the job.
    at_shutdown_ = *snapshot();
    at_shutdown_->risky_step.reset();
    if (!job::HasEnded(at_shutdown_->state)) at_shutdown_->state = JobState::kCancelled;
  }
  if (!at_shutdown_.has_value()) return;
  services_.store->PutJob(RowOf(*at_shutdown_, Now()), [id = id_](const absl::Status& status) {
    if (status.ok() || absl::IsAborted(status)) return;
    spdlog::warn("job {}: its last state is lost: {}", id, status.ToString());
  });
  at_shutdown_.reset();
}

std::shared_ptr<const JobSnapshot> JobActor::snapshot() const {
  absl::MutexLock lock(&mutex_);
  return shown_;
}

absl::Status JobActor::save_error() const {
  absl::MutexLock lock(&mutex_);
  return save_error_;
}

void JobActor::SetPhase(JobPhase phase) {
  phase.cancelling = state_.cancelled && phase.kind != PhaseKind::kNone;
  state_.phase = std::move(phase);
}

void JobActor::AddNote(const std::string& text) {
  // A restarted server may add it again.
  if (text.empty() || absl::StrContains(state_.note, text)) return;
  state_.note = state_.note.empty() ? text : absl::StrCat(state_.note, "; ", text);
}

void JobActor::ShowState() {
  ++state_.version;
  shown_at_ = Steady();
  state_.left = HasEnded() ? absl::InfiniteDuration() : TimeLeft();
  auto shown = std::make_shared<JobSnapshot>(state_);
  if (!why_full_.empty() && !HasEnded()) {
    shown->phase = {
        .kind = PhaseKind::kWaitingForSpace, .detail = why_full_, .cancelling = state_.cancelled};
  }
  absl::MutexLock lock(&mutex_);
  shown_ = std::move(shown);
}

void JobActor::Save(absl::AnyInvocable<void(const absl::Status&) &&> done) {
  BeforeSave();
  saved_ = Steady();
  const bool last = HasEnded();
  absl::MutexLock lock(&save_mutex_);
  if (suspended_ && !last) return;
  at_shutdown_.reset();
  if (!last && (state_.risky_step.has_value() || !state_.crashed_servers.empty())) {
    at_shutdown_ = state_;
    at_shutdown_->risky_step.reset();
    at_shutdown_->crashed_servers.clear();
  }
  services_.store->PutJob(
      RowOf(state_, Now()),
      [self = shared_from_this(), last, done = std::move(done)](absl::Status status) mutable {
        if (!status.ok() && !absl::IsAborted(status)) {
          spdlog::error("job {}: its state could not be stored: {}", self->id_, status.ToString());
        }
        if (last && !absl::IsAborted(status)) {
          absl::MutexLock error_lock(&self->mutex_);
          self->save_error_ = status;
        }
        if (absl::IsAborted(status)) {
          self->Post([job = self.get(), status] { job->OnNotStored(status); });
        }
        if (last && status.ok()) self->over_ = true;
        std::move(done)(status);
      });
}

void JobActor::Log(store::JobEvent event, absl::AnyInvocable<void() &&> then) {
  services_.store->AppendEvent(
      std::move(event),
      [self = shared_from_this(), then = std::move(then)](absl::Status status) mutable {
        self->Post([job = self.get(), status, then = std::move(then)]() mutable {
          status.ok() ? std::move(then)() : job->OnNotStored(status);
        });
      });
}

void JobActor::OnNotStored(const absl::Status& status) {
  if (!absl::IsAborted(status)) return End(JobState::kFailed, status);
  spdlog::warn("job {}: is left to the next leader: {}", id_, std::string(status.message()));
  Suspend();
  services_.fleet->CancelJob(id_);  // the next leader submits its candidates
}

void JobActor::EnterStep(const char* name, absl::AnyInvocable<void() &&> then) {
  step_pending_ = true;
  state_.risky_step = RiskyStep{.name = name, .server = services_.server, .boot = ThisBoot()};
  Save([self = shared_from_this(), then = std::move(then)](const absl::Status& status) mutable {
    // The job continues even if the step could not be stored. If this server does not lead any
    // more, Save suspends it.
    if (absl::IsAborted(status)) return;
    self->Post([job = self.get(), then = std::move(then)]() mutable {
      job->step_pending_ = false;
      if (!job->HasEnded()) std::move(then)();
    });
  });
}

void JobActor::LeaveStep() {
  if (!state_.risky_step.has_value()) return;
  state_.risky_step.reset();
  Save();
}

void JobActor::OnException(const absl::Status& threw) {
  const absl::Status again = CatchExceptions([&] {
    OnEnd();  // first, because the search may be inconsistent; results are stored
    End(JobState::kFailed, absl::InternalError(absl::StrCat(
                               threw.message(), ", while ", doing_,
                               "; this is a defect of Hone: please report the workload")));
  });
  if (again.ok()) return;
  spdlog::error("job {}: cannot be ended and is left alone: {}", id_, std::string(threw.message()));
  Suspend();
}

absl::Status JobActor::CheckCrashes() const {
  if (CountedCrashes(state_) < kMostCrashes) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(
      "the server ended abnormally ", state_.crashed_servers.size(),
      " times while it worked on this job",
      crashed_while_.empty() ? "" : absl::StrCat(", the last time while ", crashed_while_),
      "; \"hone jobs resume ", id_, "\" tries once more"));
}

void JobActor::End(JobState state, absl::Status why) {
  if (HasEnded()) return;
  // A read that failed because the database is away says nothing about the job.
  if (state == JobState::kFailed && absl::IsUnavailable(why)) {
    const absl::Status leading = services_.store->Leading();
    if (absl::IsAborted(leading)) return OnNotStored(leading);
  }
  state_.state = state;
  UpdateWall();
  state_.queued = 0;
  state_.phase = {};
  state_.wait_reason.clear();
  state_.risky_step.reset();
  // If a job that was given up is resumed, it has one more try.
  std::vector<std::string>& crashed = state_.crashed_servers;
  crashed.erase(crashed.begin(), CheckCrashes().ok() ? crashed.end() : crashed.end() - 1);
  if (state == JobState::kFailed) {
    state_.is_resumable = IsOfTheSurroundings(why);
    state_.error = absl::StrCat(why.message(), ResumeAdvice(state_, why.message()));
    spdlog::warn("job {}: failed: {}", id_, state_.error);
  }
  services_.fleet->CancelJob(id_);
  spdlog::info("job {}: {} after {} trials", id_, std::string(JobStateName(state)), state_.trials);
  Save();
  ShowState();
  OnEnd();
}

}  // namespace hone::job
