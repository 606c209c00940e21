#include "server/job/job_claims.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "server/job/actor/job_codec.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

constexpr int kClaimsAtOnce = 200;
constexpr int kRenewalsPerLease = 6;

}  // namespace

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

JobClaims::JobClaims(const JobServices& services, const JobOptions& options, JobBook* book,
                     const JobStarter* starter)
    : services_(services), options_(options), book_(*book), starter_(*starter), boot_(ThisBoot()) {}

absl::Status JobClaims::Restore() {
  while (true) {
    absl::Notification done;
    absl::StatusOr<std::vector<store::JobRow>> claimed;
    services_.store->ClaimJobs(starter_.Claim(), kClaimsAtOnce,
                               [&](absl::StatusOr<std::vector<store::JobRow>> rows) {
                                 claimed = std::move(rows);
                                 done.Notify();
                               });
    done.WaitForNotification();
    if (absl::IsDataLoss(claimed.status())) {
      // The check of the store may end before or after this. The server answers look-ups anyway.
      spdlog::error("unfinished jobs are not continued: {}",
                    std::string(claimed.status().message()));
      break;
    }
    HONE_RETURN_IF_ERROR(claimed.status());
    const bool released = TakeUp(*claimed);
    // Released jobs would be claimed again. Renew claims the rest.
    if (released || static_cast<int>(claimed->size()) < kClaimsAtOnce) break;
  }
  absl::MutexLock lock(&mutex_);
  renewed_ = services_.SteadyNow();
  return absl::OkStatus();
}

bool JobClaims::TakeUp(const std::vector<store::JobRow>& rows) {
  bool released = false;
  const auto release = [&](const store::JobRow& row) {
    services_.store->ReleaseJob(row.id, row.fence, [](const absl::Status&) {});
    released = true;
  };
  std::vector<std::shared_ptr<JobActor>> jobs, suspects;
  for (const store::JobRow& row : rows) {
    absl::StatusOr<JobSnapshot> snapshot = FromRow(row);
    if (!snapshot.ok()) {
      LogUnreadable(row.id, snapshot.status());
      // A replica of the release that wrote it can continue it.
      if (services_.store->IsShared()) release(row);
      continue;
    }
    if (BelongsElsewhere(*snapshot, rows)) {
      release(row);
      continue;
    }
    const auto& step = snapshot->risky_step;
    const bool crashed = step.has_value() && EndedByItself(*step, services_.server, boot_);
    if (crashed) {
      ++snapshot->crashes;
      spdlog::warn("job {}: a server ended abnormally while {} (crashes of this job: {})", row.id,
                   step->name, snapshot->crashes);
    }
    const std::shared_ptr<JobActor> job = starter_.Make(*std::move(snapshot));
    if (!book_.AddClaimed(job)) return released;
    (crashed ? suspects : jobs).push_back(job);
  }
  const bool one_at_a_time = !suspects.empty();
  jobs.insert(jobs.end(), suspects.begin(), suspects.end());
  for (const std::shared_ptr<JobActor>& job : jobs) {
    services_.fleet->CancelJob(job->snapshot()->id);  // of the suspended job
    spdlog::info("job {}: is continued", job->snapshot()->id);
    if (!one_at_a_time) job->Start();
  }
  if (one_at_a_time) turns_.Add(jobs);
  return released;
}

void JobClaims::LogUnreadable(const std::string& id, const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!unreadable_.insert(id).second) return;
  spdlog::error("job {} cannot be read: {}", id, why.ToString());
}

bool JobClaims::BelongsElsewhere(const JobSnapshot& snapshot,
                                 const std::vector<store::JobRow>& claimed) const {
  const std::string& parent = snapshot.spec.parent;
  if (parent.empty() || !services_.store->IsShared() || book_.Find(parent) != nullptr) return false;
  const auto is_parent = [&](const store::JobRow& row) { return row.id == parent; };
  if (std::any_of(claimed.begin(), claimed.end(), is_parent)) return false;
  const SnapshotOr stored = ReadJob(book_, *services_.store, parent);
  return stored.ok() && !HasEnded((*stored)->state);  // otherwise it ends as an orphan
}

void JobClaims::Tick() {
  turns_.Pass();
  Renew();
}

void JobClaims::Renew() {
  if (!services_.store->IsShared() || book_.IsSuspended()) return;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = services_.SteadyNow();
    if (now - renewed_ < options_.claim_lease / kRenewalsPerLease) return;
    renewed_ = now;
  }
  const std::vector<std::string> asked = book_.StoredIds();
  const store::JobClaim claim = starter_.Claim();
  if (!asked.empty()) {
    services_.store->RenewJobs(claim,
                               [this, asked](const absl::StatusOr<std::vector<std::string>>& held) {
                                 if (held.ok()) return LetGo(asked, *held);
                                 spdlog::warn("the claims on jobs could not be renewed: {}",
                                              std::string(held.status().message()));
                               });
  }
  services_.store->ClaimJobs(claim, kClaimsAtOnce,
                             [this](const absl::StatusOr<std::vector<store::JobRow>>& rows) {
                               if (rows.ok()) TakeUp(*rows);
                             });
}

void JobClaims::LetGo(const std::vector<std::string>& asked, const std::vector<std::string>& held) {
  std::set<std::string> others(asked.begin(), asked.end());
  for (const std::string& id : held) others.erase(id);
  const JobBook::Lost lost = book_.RemoveLost(others);
  for (const std::shared_ptr<JobActor>& job : lost.jobs) {
    spdlog::warn("job {}: another server works on it now", job->id());
    services_.fleet->CancelJob(job->id());
  }
  for (const std::shared_ptr<JobActor>& job : lost.children) {
    services_.fleet->CancelJob(job->id());
    services_.store->ReleaseJob(job->id(), job->snapshot()->fence, [](const absl::Status&) {});
  }
}

}  // namespace hone::job
