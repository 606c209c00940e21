#include "server/task/job.h"

#include <algorithm>

#include "server/task/first_work.h"

namespace hone::task {
namespace {

// The part of a time limit that is kept for the confirmation.
absl::Duration ConfirmationTime(absl::Duration max_time) {
  return std::min(max_time / 2, std::clamp(max_time / 4, absl::Seconds(1), absl::Seconds(20)));
}

}  // namespace

void Job::Start() {
  Post([this] { Initialize(); });
}

void Job::Cancel(bool confirm) {
  Post([this, confirm] { OnCancel(confirm); });
}

void Job::Tick() {
  if (tick_posted_.exchange(true)) return;  // the strand is busy; one tick is enough
  Post([this] { OnTick(); });
}

void Job::Initialize() {
  if (HasEnded()) return;  // cancelled while it waited for its turn
  if (const absl::Status crashes = CheckCrashes(); !crashes.ok()) {
    return End(JobState::kFailed, crashes);
  }
  state().state = JobState::kRunning;
  SetPhase(kMakingSpaces);
  ShowState();
  Save();
  if (services().preflight == nullptr) return OnChecked(absl::OkStatus());
  services().preflight->Check(spec(),
                              [this, self = shared_from_this()](const absl::Status& checked) {
                                self->Post([this, checked] { OnChecked(checked); });
                              });
}

void Job::OnChecked(const absl::Status& checked) {
  if (HasEnded()) return;
  if (absl::IsCancelled(checked)) return;  // the next server continues
  if (!checked.ok()) return End(JobState::kFailed, checked);
  EnterStep(kMakingSpaces, [this] { Begin(); });
}

void Job::Begin() {
  SetDoing(kMakingSpaces);
  if (absl::Status status = task_.Open(); !status.ok()) return End(JobState::kFailed, status);
  if (spec().revalidate > 0) {
    LeaveStep();
    begun_ = true;
    return confirm_.BeginRevalidation();
  }
  SetDoing("taking up the search");
  if (absl::Status status = search_.Restore(); !status.ok()) {
    return End(JobState::kFailed, status);
  }
  LeaveStep();
  begun_ = true;
  if (!state().cancelled) return search_.Begin();
  // It was cancelled before the server ended. Its results are confirmed.
  StopSearch(Steady());
  search_.Pump();
}

void Job::OnSearched() {
  std::vector<Screened> screened = search_.TakeScreened();
  spec().unpublished ? deliver_.Begin(std::move(screened)) : confirm_.Begin(std::move(screened));
}

void Job::StopSearch(absl::Time deadline) {
  search_.Stop();
  drain_deadline_ = deadline;
}

void Job::OnCancel(bool confirm) {
  if (HasEnded()) return;
  if (!confirm) return End(JobState::kCancelled);
  state().cancelled = true;
  Save();
  // A job that has not begun stops when it begins.
  if (state().state != JobState::kRunning || search_.IsStopping()) return;
  StopSearch(Steady() + options().drain_limit);
  services().fleet->CancelWaiting(id());
  search_.Pump();
}

void Job::OnTick() {
  tick_posted_ = false;
  if (HasEnded()) {
    // Retries to store the last state if this failed, for example because the disk was full. The
    // job cannot be resumed until then.
    if (!IsOver() && SaveIsDue()) Save();
    return;
  }
  state().wall = Wall();
  const bool searching = state().state == JobState::kRunning;
  const absl::Duration reserved = ConfirmationTime(spec().max_time);
  if (searching && !search_.IsStopping() && TimeLeft() <= reserved) {
    StopSearch(Steady() + std::min(options().drain_limit, reserved / 4));
    services().fleet->CancelWaiting(id());
  }
  if (searching && Steady() >= drain_deadline_) {
    drain_deadline_ = absl::InfiniteFuture();
    services().fleet->CancelJob(id());
  }
  if (searching) {
    search_.Tick();
  } else {
    const bool delivers = spec().unpublished && spec().revalidate == 0;
    delivers ? deliver_.Tick() : confirm_.Tick();
  }
  if (!HasEnded() && SaveIsDue()) Save();
  if (ShowIsDue()) ShowState();
}

void Job::OnEnd() {
  begun_ = true;
  search_.Close();
  confirm_.Close();
}

}  // namespace hone::task
