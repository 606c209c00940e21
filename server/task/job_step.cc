// The steps of a job in which a defect may end the server, and what becomes of exceptions.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/task/job.h"
#include "server/task/job_messages.h"
#include "spdlog/spdlog.h"

namespace hone::task {

void Job::StoreStep(const char* name, absl::AnyInvocable<void() &&> stored) {
  step_pending_ = true;
  state_.risky_step = RiskyStep{.name = name, .server = services_.server, .boot = ThisBoot()};
  Save([stored = std::move(stored)](const absl::Status& status) mutable {
    // Where the step could not be stored for want of room, the job goes on all the same; where
    // another server has claimed the job, Save lets go of it.
    if (!absl::IsAborted(status)) std::move(stored)();
  });
}

void Job::LeaveStep() {
  if (!state_.risky_step.has_value()) return;
  state_.risky_step.reset();
  Save();
}

void Job::OnException(const absl::Status& threw) {
  const absl::Status again = CatchExceptions([&] {
    search_.reset();  // it may be half changed; what was measured is in the store
    End(JobState::kFailed, absl::InternalError(absl::StrCat(
                               threw.message(), ", while ", doing_,
                               "; this is a defect of Hone: please report the workload")));
  });
  if (again.ok()) return;
  spdlog::error("job {}: cannot be ended and is left alone: {}", id_, std::string(threw.message()));
  Suspend();
}

void Job::Suspend() {
  absl::MutexLock lock(&save_mutex_);
  suspended_ = true;
}

void Job::SuspendForShutdown() {
  absl::MutexLock lock(&save_mutex_);
  suspended_ = true;
  if (!at_shutdown_.has_value()) return;
  services_.store->PutJob(MakeRow(*at_shutdown_), [id = id_](const absl::Status& status) {
    if (!status.ok()) spdlog::warn("job {}: its last state is lost: {}", id, status.ToString());
  });
  at_shutdown_.reset();
}

}  // namespace hone::task
