#include "server/task/job_manager.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/base/counted.h"
#include "common/base/status_macros.h"
#include "server/task/job_codec.h"
#include "server/task/network_job.h"
#include "server/task/network_state.h"
#include "spdlog/spdlog.h"

namespace hone::task {
namespace {

constexpr int kPage = 200;
constexpr int kRenewalsPerLease = 6;

std::string NameThisRun() {
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  static std::atomic<int> made = 0;
  return absl::StrCat(host, "/", getpid(), "/", absl::ToUnixMicros(absl::Now()), "/", ++made);
}

JobServices Completed(JobServices services, const std::string& server, ChildJobs* children) {
  services.server = server;
  services.children = children;
  return services;
}

absl::Status JustEnding(const std::string& id) {
  return absl::UnavailableError(absl::StrCat("job ", id, " is just ending; try again in a moment"));
}

bool IsChild(const JobActor& job) { return !job.spec().parent.empty(); }

SnapshotOr SharedFromRow(const store::JobRow& row) {
  HONE_ASSIGN_OR_RETURN(JobSnapshot snapshot, FromRow(row));
  return std::make_shared<const JobSnapshot>(std::move(snapshot));
}

// What can be shown of a job whose row cannot be read, for example because a newer release wrote
// it.
std::shared_ptr<const JobSnapshot> Unreadable(const store::JobRow& row, const absl::Status& why) {
  JobSnapshot snapshot{.id = row.id, .created_unix_ms = row.created_unix_ms, .fence = row.fence};
  snapshot.spec.request_id = row.request_id;
  snapshot.spec.owner = row.owner;
  snapshot.spec.priority = row.priority;
  snapshot.state = JobStateFromName(row.state).value_or(JobState::kFailed);
  snapshot.error = absl::StrCat("the job cannot be read: ", why.message());
  return std::make_shared<const JobSnapshot>(std::move(snapshot));
}

}  // namespace

JobManager::JobManager(const JobServices& services, JobOptions options)
    : replica_(NameThisRun()),
      boot_(ThisBoot()),
      services_(Completed(services, replica_, this)),
      options_(std::move(options)),
      places_(options_.max_jobs, options_.max_jobs_per_owner) {}

store::JobClaim JobManager::MakeClaim() const {
  const absl::Time now = services_.clock->Now();
  return {.replica = replica_,
          .now_unix_ms = absl::ToUnixMillis(now),
          .until_unix_ms = services_.store->IsShared()
                               ? absl::ToUnixMillis(now + options_.claim_lease)
                               : std::numeric_limits<int64_t>::max()};
}

absl::Status JobManager::Restore() {
  while (true) {
    absl::Notification done;
    absl::StatusOr<std::vector<store::JobRow>> claimed;
    services_.store->ClaimJobs(MakeClaim(), kPage,
                               [&](absl::StatusOr<std::vector<store::JobRow>> rows) {
                                 claimed = std::move(rows);
                                 done.Notify();
                               });
    done.WaitForNotification();
    HONE_RETURN_IF_ERROR(claimed.status());
    const bool released = TakeUp(*claimed);
    // Released jobs would be claimed again. RenewClaims claims the rest.
    if (released || static_cast<int>(claimed->size()) < kPage) break;
  }
  absl::MutexLock lock(&mutex_);
  claims_renewed_ = services_.SteadyNow();
  return absl::OkStatus();
}

bool JobManager::TakeUp(const std::vector<store::JobRow>& rows) {
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
    const bool crashed = step.has_value() && EndedByItself(*step, replica_, boot_);
    if (crashed) {
      ++snapshot->crashes;
      spdlog::warn("job {}: an earlier server ended abnormally while {}, {} in all", row.id,
                   step->name, snapshot->crashes);
    }
    const std::shared_ptr<JobActor> job = MakeJob(*std::move(snapshot));
    absl::MutexLock lock(&mutex_);
    if (suspended_) return released;
    std::shared_ptr<JobActor>& known = jobs_[row.id];
    // This server's claim had expired, so the stored state is the valid one.
    if (known != nullptr) known->Suspend();
    known = job;
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

void JobManager::LogUnreadable(const std::string& id, const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  if (!unreadable_.insert(id).second) return;
  spdlog::error("job {} cannot be read: {}", id, why.ToString());
}

bool JobManager::BelongsElsewhere(const JobSnapshot& snapshot,
                                  const std::vector<store::JobRow>& claimed) const {
  const std::string& parent = snapshot.spec.parent;
  if (parent.empty() || !services_.store->IsShared() || Find(parent) != nullptr) return false;
  const auto is_parent = [&](const store::JobRow& row) { return row.id == parent; };
  if (std::any_of(claimed.begin(), claimed.end(), is_parent)) return false;
  const SnapshotOr stored = Get(parent);
  return stored.ok() && !HasEnded((*stored)->state);  // otherwise it ends as an orphan
}

void JobManager::RenewClaims() {
  if (!services_.store->IsShared()) return;
  std::vector<std::string> asked;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = services_.SteadyNow();
    if (suspended_ || now - claims_renewed_ < options_.claim_lease / kRenewalsPerLease) return;
    claims_renewed_ = now;
    for (const auto& [id, job] : jobs_) {
      if (!unstored_.contains(id)) asked.push_back(id);
    }
  }
  const store::JobClaim claim = MakeClaim();
  if (!asked.empty()) {
    services_.store->RenewJobs(claim,
                               [this, asked](const absl::StatusOr<std::vector<std::string>>& held) {
                                 if (held.ok()) return LetGo(asked, *held);
                                 spdlog::warn("the claims on jobs could not be renewed: {}",
                                              std::string(held.status().message()));
                               });
  }
  services_.store->ClaimJobs(claim, kPage,
                             [this](const absl::StatusOr<std::vector<store::JobRow>>& rows) {
                               if (rows.ok()) TakeUp(*rows);
                             });
}

void JobManager::LetGo(const std::vector<std::string>& asked,
                       const std::vector<std::string>& held) {
  const std::set<std::string> ours(held.begin(), held.end());
  std::vector<std::string> lost;
  std::vector<std::shared_ptr<JobActor>> without_parent;
  {
    absl::MutexLock lock(&mutex_);
    for (const std::string& id : asked) {
      auto found = jobs_.find(id);
      if (found == jobs_.end() || ours.contains(id)) continue;
      if (HasEnded(found->second->snapshot()->state)) continue;
      spdlog::warn("job {}: another server works on it now", id);
      found->second->Suspend();
      jobs_.erase(found);
      lost.push_back(id);
    }
    for (auto job = jobs_.begin(); job != jobs_.end();) {
      if (std::find(lost.begin(), lost.end(), job->second->spec().parent) == lost.end()) {
        ++job;
        continue;
      }
      job->second->Suspend();
      without_parent.push_back(job->second);
      lost.push_back(job->first);
      job = jobs_.erase(job);
    }
  }
  for (const std::string& id : lost) services_.fleet->CancelJob(id);
  for (const std::shared_ptr<JobActor>& job : without_parent) {
    services_.store->ReleaseJob(job->id(), job->snapshot()->fence, [](const absl::Status&) {});
  }
}

void JobManager::Create(JobSpec spec, absl::AnyInvocable<void(SnapshotOr) &&> done) {
  if (!spec.request_id.empty()) {
    absl::StatusOr<store::JobRow> row = services_.store->GetJobByRequest(spec.request_id);
    if (row.ok()) return std::move(done)(Get(row->id));
    if (!absl::IsNotFound(row.status())) return std::move(done)(row.status());
  }
  const absl::StatusOr<int64_t> number = services_.store->NextJobNumber();
  if (!number.ok()) return std::move(done)(number.status());
  JobSnapshot snapshot;
  snapshot.id = absl::StrCat(*number);
  snapshot.fence = 1;
  snapshot.spec = std::move(spec);
  if (!snapshot.spec.network.has_value()) {
    const absl::StatusOr<WorkloadInfo> workload =
        services_.environment->Describe(snapshot.spec.workload);
    if (workload.ok()) snapshot.workload_digest = workload->digest;
  }
  snapshot.created_unix_ms = absl::ToUnixMillis(services_.clock->Now());
  store::JobRow row = RowOf(snapshot, services_.clock->Now());
  const store::JobClaim claim = MakeClaim();
  row.replica = claim.replica;
  row.lease_until_unix_ms = claim.until_unix_ms;
  std::shared_ptr<JobActor> job;
  SnapshotOr known = absl::UnavailableError("the server is shutting down");
  {
    absl::MutexLock lock(&mutex_);
    if (const std::shared_ptr<JobActor> other = FindRequest(row.request_id); other != nullptr) {
      known = other->snapshot();  // another call is creating it
    } else if (absl::Status room = places_.Check(Holders(), row.request_id, row.owner);
               !suspended_ && !room.ok()) {
      known = room;
    } else if (!suspended_) {
      job = MakeJob(std::move(snapshot));
      AddUnstored(job);
    }
  }
  if (job == nullptr) return std::move(done)(std::move(known));
  StoreAndStart(std::move(row), std::move(job), std::move(done));
}

void JobManager::AddUnstored(const std::shared_ptr<JobActor>& job) {
  jobs_[job->id()] = job;
  unstored_.insert(job->id());
}

absl::StatusOr<std::shared_ptr<void>> JobManager::Reserve(const JobSpec& spec) {
  if (!spec.request_id.empty() && services_.store->GetJobByRequest(spec.request_id).ok()) {
    return nullptr;
  }
  absl::MutexLock lock(&mutex_);
  if (FindRequest(spec.request_id) != nullptr) return nullptr;
  HONE_RETURN_IF_ERROR(places_.Check(Holders(), spec.request_id, spec.owner));
  const JobPlaces::Place place = places_.Reserve(spec.request_id, spec.owner);
  return std::shared_ptr<void>(nullptr, [this, place](void*) {
    absl::MutexLock lock(&mutex_);
    places_.Release(place);
  });
}

void JobManager::StoreAndStart(store::JobRow row, std::shared_ptr<JobActor> job,
                               absl::AnyInvocable<void(SnapshotOr) &&> done) {
  services_.store->PutJob(
      row, [this, row, job, done = std::move(done)](absl::Status status) mutable {
        {
          absl::MutexLock lock(&mutex_);
          unstored_.erase(row.id);
          if (!status.ok()) jobs_.erase(row.id);
        }
        if (status.ok()) {
          job->Start();
          return std::move(done)(job->snapshot());
        }
        // Another replica handled the same request at the same time.
        if (absl::IsAlreadyExists(status) && !row.request_id.empty()) {
          absl::StatusOr<store::JobRow> first = services_.store->GetJobByRequest(row.request_id);
          if (first.ok()) return std::move(done)(SharedFromRow(*first));
        }
        std::move(done)(status);
      });
}

void JobManager::Resume(const std::string& id, int64_t max_trials, absl::Duration max_time,
                        absl::AnyInvocable<void(SnapshotOr) &&> done) {
  if (std::shared_ptr<JobActor> job = Find(id); job != nullptr && !job->IsOver()) {
    const std::shared_ptr<const JobSnapshot> now = job->snapshot();
    if (!HasEnded(now->state)) return std::move(done)(now);
    return std::move(done)(JustEnding(id));
  }
  absl::StatusOr<store::JobRow> row = services_.store->GetJob(id);
  if (!row.ok()) return std::move(done)(row.status());
  absl::StatusOr<JobSnapshot> snapshot = FromRow(*row);
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  // Another replica works on it.
  if (!HasEnded(snapshot->state)) return std::move(done)(SharedFromRow(*row));
  if (!snapshot->spec.parent.empty()) {
    return std::move(done)(absl::InvalidArgumentError(absl::StrCat(
        "job ", id, " tunes a task of job ", snapshot->spec.parent, "; resume that job")));
  }
  if (snapshot->state == JobState::kDone) {
    return std::move(done)(absl::FailedPreconditionError(absl::StrCat(
        "job ", id, " is done; start a new job of the same workload, which reuses its results")));
  }
  JobSpec& spec = snapshot->spec;
  if ((max_trials != 0 && max_trials < spec.max_trials) ||
      (max_time != absl::ZeroDuration() && max_time < spec.max_time)) {
    return std::move(done)(absl::InvalidArgumentError(absl::StrCat(
        "the new limits must not be below those of the job (",
        spec.max_trials > 0 ? Counted(spec.max_trials, "trial") : "any number of trials", ", ",
        spec.max_time > absl::ZeroDuration() ? absl::FormatDuration(spec.max_time)
                                             : "no time limit",
        ")")));
  }
  if (max_trials != 0) spec.max_trials = max_trials;
  if (max_time != absl::ZeroDuration()) spec.max_time = max_time;
  snapshot->state = JobState::kPending;
  snapshot->cancelled = false;
  snapshot->error.clear();
  snapshot->note.clear();
  if (snapshot->network.has_value()) {
    if (absl::Status ended = NoteEnds(id, *snapshot->network); !ended.ok()) {
      return std::move(done)(std::move(ended));
    }
    ReopenTasks(*spec.network, *snapshot->network);
  }
  row = RowOf(*snapshot, services_.clock->Now());
  spdlog::info("job {}: resumed", id);
  StartAgain(*std::move(row), *std::move(snapshot), std::move(done));
}

absl::Status JobManager::NoteEnds(const std::string& id, NetworkState& network) const {
  for (size_t i = 0; i < network.tasks.size(); ++i) {
    const std::string child = TaskJobId(id, i);
    if (const std::shared_ptr<JobActor> job = Find(child); job != nullptr && !job->IsOver()) {
      return JustEnding(id);
    }
    const SnapshotOr last = Get(child);
    if (absl::IsNotFound(last.status())) continue;
    HONE_RETURN_IF_ERROR(last.status());
    if (!HasEnded((*last)->state)) return JustEnding(id);  // at another replica
    network.tasks[i].state = std::string(JobStateName((*last)->state));
  }
  return absl::OkStatus();
}

void JobManager::StartAgain(store::JobRow row, JobSnapshot snapshot,
                            absl::AnyInvocable<void(SnapshotOr) &&> done) {
  if (services_.store->IsShared()) {
    // The next replica that claims the job continues it.
    return services_.store->PutJob(
        row, [this, row, done = std::move(done)](absl::Status status) mutable {
          if (!status.ok()) return std::move(done)(status);
          services_.store->ReleaseJob(row.id, row.fence, [](const absl::Status&) {});
          std::move(done)(SharedFromRow(row));
        });
  }
  std::shared_ptr<JobActor> job;
  SnapshotOr known = absl::UnavailableError("the server is shutting down");
  {
    absl::MutexLock lock(&mutex_);
    auto other = jobs_.find(row.id);
    if (other != jobs_.end() && !other->second->IsOver()) {
      known = other->second->snapshot();  // another call was faster
    } else if (!suspended_) {
      job = MakeJob(std::move(snapshot));
      AddUnstored(job);
    }
  }
  if (job == nullptr) return std::move(done)(std::move(known));
  StoreAndStart(std::move(row), std::move(job), std::move(done));
}

std::shared_ptr<JobActor> JobManager::FindRequest(const std::string& request_id) const {
  if (request_id.empty()) return nullptr;
  for (const auto& [id, job] : jobs_) {
    if (job->spec().request_id == request_id) return job;
  }
  return nullptr;
}

std::vector<JobPlaces::Holder> JobManager::Holders() const {
  std::vector<JobPlaces::Holder> holders;
  for (const auto& [id, job] : jobs_) {
    if (IsChild(*job)) continue;
    holders.push_back({.request_id = job->spec().request_id,
                       .owner = job->spec().owner,
                       .ended = HasEnded(job->snapshot()->state)});
  }
  return holders;
}

std::shared_ptr<JobActor> JobManager::Find(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

SnapshotOr JobManager::Get(const std::string& id) const {
  if (std::shared_ptr<JobActor> job = Find(id); job != nullptr) return job->snapshot();
  HONE_ASSIGN_OR_RETURN(const store::JobRow row, services_.store->GetJob(id));
  return SharedFromRow(row);
}

absl::StatusOr<std::vector<std::shared_ptr<const JobSnapshot>>> JobManager::List(
    int page_size, const std::string& after_id) const {
  std::vector<std::shared_ptr<const JobSnapshot>> list;
  std::string last = after_id;
  int rows = page_size;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<store::JobRow> page,
                          services_.store->ListJobs(rows, last));
    for (const store::JobRow& row : page) {
      last = row.id;
      if (IsTaskJobId(row.id)) continue;
      if (std::shared_ptr<JobActor> job = Find(row.id); job != nullptr) {
        list.push_back(job->snapshot());
      } else {
        const SnapshotOr stored = SharedFromRow(row);
        list.push_back(stored.ok() ? *stored : Unreadable(row, stored.status()));
      }
      if (static_cast<int>(list.size()) == page_size) return list;
    }
    if (static_cast<int>(page.size()) < rows) return list;
    rows = std::max(rows, kPage);  // many of the next rows may be of children, too
  }
}

SnapshotOr JobManager::Cancel(const std::string& id, bool confirm) {
  if (std::shared_ptr<JobActor> job = Find(id); job != nullptr) {
    job->Cancel(confirm);
    return job->snapshot();
  }
  HONE_ASSIGN_OR_RETURN(const store::JobRow row, services_.store->GetJob(id));
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const JobSnapshot> snapshot, SharedFromRow(row));
  if (!HasEnded(snapshot->state) && row.replica != replica_) {
    return absl::FailedPreconditionError(
        absl::StrCat("another server works on job ", id, ": ",
                     row.replica.empty() ? "it has just been given back; try again" : row.replica));
  }
  return snapshot;
}

std::vector<std::string> JobManager::Unfinished() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs_) {
    if (IsChild(*job)) continue;
    if (!HasEnded(job->snapshot()->state)) ids.push_back(id);
  }
  return ids;
}

std::map<JobState, int64_t> JobManager::States() const {
  absl::MutexLock lock(&mutex_);
  std::map<JobState, int64_t> states;
  for (const auto& [id, job] : jobs_) {
    if (!IsChild(*job)) ++states[job->snapshot()->state];
  }
  return states;
}

std::shared_ptr<JobActor> JobManager::MakeJob(JobSnapshot snapshot) const {
  if (snapshot.spec.network.has_value()) {
    return std::make_shared<NetworkJob>(services_, options_, std::move(snapshot));
  }
  return std::make_shared<Job>(services_, options_, std::move(snapshot));
}

void JobManager::CreateChild(const std::string& id, JobSpec spec, int64_t allowance, Done done) {
  if (Find(id) != nullptr || services_.store->GetJob(id).ok()) {
    return std::move(done)(absl::OkStatus());  // an earlier server did not note it
  }
  JobSnapshot snapshot;
  snapshot.id = id;
  snapshot.fence = 1;
  snapshot.spec = std::move(spec);
  snapshot.allowance = snapshot.unmeasured = allowance;
  snapshot.created_unix_ms = absl::ToUnixMillis(services_.clock->Now());
  store::JobRow row = RowOf(snapshot, services_.clock->Now());
  const store::JobClaim claim = MakeClaim();
  row.replica = claim.replica;
  row.lease_until_unix_ms = claim.until_unix_ms;
  const std::shared_ptr<JobActor> job = MakeJob(std::move(snapshot));
  {
    absl::MutexLock lock(&mutex_);
    if (suspended_) return;  // the next server continues
    AddUnstored(job);
  }
  StoreAndStart(std::move(row), job, [done = std::move(done)](const SnapshotOr& created) mutable {
    std::move(done)(created.status());
  });
}

void JobManager::ReopenChild(const std::string& id, int64_t allowance, Done done) {
  absl::StatusOr<store::JobRow> row = services_.store->GetJob(id);
  if (!row.ok()) return std::move(done)(row.status());
  absl::StatusOr<JobSnapshot> snapshot = FromRow(*row);
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  snapshot->state = JobState::kPending;
  snapshot->cancelled = false;
  snapshot->error.clear();
  snapshot->note.clear();
  snapshot->allowance = std::max(snapshot->allowance, allowance);
  row = RowOf(*snapshot, services_.clock->Now());
  StartAgain(*std::move(row), *std::move(snapshot),
             [done = std::move(done)](const SnapshotOr& started) mutable {
               std::move(done)(started.status());
             });
}

absl::StatusOr<ChildJobs::Child> JobManager::GetChild(const std::string& id) const {
  if (const std::shared_ptr<JobActor> job = Find(id); job != nullptr) {
    const bool begun = job->HasBegun();  // first, because the snapshot may be older otherwise
    return Child{.begun = begun, .snapshot = job->snapshot()};
  }
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const JobSnapshot> snapshot, Get(id));
  return Child{.snapshot = std::move(snapshot)};
}

std::shared_ptr<Job> JobManager::FindChild(const std::string& id) const {
  return std::dynamic_pointer_cast<Job>(Find(id));
}

void JobManager::AllowChild(const std::string& id, int64_t candidates) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Allow(candidates);
}

void JobManager::FinishChild(const std::string& id, absl::Duration limit) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Finish(limit);
}

void JobManager::CancelChild(const std::string& id) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Cancel(false);
}

void JobManager::Tick() {
  std::vector<std::shared_ptr<JobActor>> jobs;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      if (it->second->IsOver()) {
        it = jobs_.erase(it);
        continue;
      }
      jobs.push_back(it->second);
      ++it;
    }
  }
  for (const std::shared_ptr<JobActor>& job : jobs) job->Tick();
  turns_.Pass();
  RenewClaims();
}

void JobManager::Suspend() {
  turns_.Stop();
  std::map<std::string, std::shared_ptr<JobActor>> jobs;
  {
    absl::MutexLock lock(&mutex_);
    suspended_ = true;
    jobs = jobs_;
  }
  for (const auto& [id, job] : jobs) {
    job->SuspendForShutdown();
    // Other replicas then need not wait for the claim to expire.
    if (!services_.store->IsShared()) continue;
    services_.store->ReleaseJob(id, job->snapshot()->fence, [](const absl::Status&) {});
  }
}

}  // namespace hone::task
