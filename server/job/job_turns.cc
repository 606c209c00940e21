#include "server/job/job_turns.h"

#include <utility>

namespace hone::job {

void JobTurns::Add(const std::vector<std::shared_ptr<JobActor>>& jobs) {
  {
    absl::MutexLock lock(&mutex_);
    waiting_.insert(waiting_.end(), jobs.begin(), jobs.end());
  }
  Pass();
}

void JobTurns::Pass() {
  absl::MutexLock lock(&mutex_);
  if (stopped_ || waiting_.empty()) return;
  if (beginning_ != nullptr && !beginning_->HasBegun()) return;
  beginning_ = std::move(waiting_.front());
  waiting_.pop_front();
  beginning_->Start();
}

void JobTurns::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

}  // namespace hone::job
