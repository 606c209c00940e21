#include "server/job/job_book.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/seconds_text.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "server/job/actor/job_codec.h"
#include "server/job/network/network_job.h"
#include "server/job/search/draft_work.h"
#include "spdlog/spdlog.h"

namespace hone::job {
namespace {

absl::Status ServerEnds() { return absl::UnavailableError("the server is shutting down"); }

bool IsChild(const JobActor& job) { return !job.spec().parent.empty(); }

// Returns the record of a confirmed best as it is in the store; nullopt if it is not there.
std::optional<record::Record> StoredRecordOf(store::Store& store, const std::optional<Best>& best) {
  if (!best || !record::IsConfirmed(best->record)) return std::nullopt;
  absl::StatusOr<record::Record> stored = store.GetRecord(best->record.id);
  if (!stored.ok()) return std::nullopt;
  return *std::move(stored);
}

}  // namespace

JobBook::JobPtr JobBook::Find(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

std::vector<std::string> JobBook::Unfinished() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs_) {
    if (IsChild(*job)) continue;
    if (!HasEnded(job->snapshot()->state)) ids.push_back(id);
  }
  return ids;
}

std::map<JobState, int64_t> JobBook::States() const {
  absl::MutexLock lock(&mutex_);
  std::map<JobState, int64_t> states;
  for (const auto& [id, job] : jobs_) {
    if (!IsChild(*job)) ++states[job->snapshot()->state];
  }
  return states;
}

std::optional<SnapshotOr> JobBook::AddNew(const JobPtr& job, const void* place) {
  absl::MutexLock lock(&mutex_);
  const JobSpec& spec = job->spec();
  if (const JobPtr other = FindRequest(spec.request_id); other != nullptr) {
    return other->snapshot();  // another call is creating it
  }
  if (suspended_) return ServerEnds();
  if (absl::Status room = CheckLimits(spec.request_id, spec.owner, place); !room.ok()) {
    return room;
  }
  jobs_[job->id()] = job;
  return std::nullopt;
}

std::optional<SnapshotOr> JobBook::AddAgain(const JobPtr& job) {
  absl::MutexLock lock(&mutex_);
  auto other = jobs_.find(job->id());
  if (other != jobs_.end() && !other->second->IsOver()) {
    return other->second->snapshot();  // another call was faster
  }
  if (suspended_) return ServerEnds();
  if (!IsChild(*job)) {
    const JobSpec& spec = job->spec();
    if (absl::Status room = CheckLimits(spec.request_id, spec.owner); !room.ok()) {
      return room;
    }
  }
  jobs_[job->id()] = job;
  return std::nullopt;
}

bool JobBook::Add(const JobPtr& job) {
  absl::MutexLock lock(&mutex_);
  if (suspended_) return false;
  jobs_[job->id()] = job;
  return true;
}

void JobBook::Remove(const std::string& id) {
  absl::MutexLock lock(&mutex_);
  jobs_.erase(id);
}

absl::StatusOr<std::shared_ptr<void>> JobBook::Reserve(const std::string& request_id,
                                                       const std::string& owner) {
  absl::MutexLock lock(&mutex_);
  if (FindRequest(request_id) != nullptr) return nullptr;
  HONE_RETURN_IF_ERROR(CheckLimits(request_id, owner));
  const auto place = places_.emplace(request_id, owner);
  return std::shared_ptr<void>(&*place, [this, place](void*) {
    absl::MutexLock lock(&mutex_);
    places_.erase(place);
  });
}

std::vector<JobBook::JobPtr> JobBook::RemoveOver() {
  absl::MutexLock lock(&mutex_);
  std::erase_if(jobs_, [](const auto& job) { return job.second->IsOver(); });
  std::vector<JobPtr> others;
  for (const auto& [id, job] : jobs_) others.push_back(job);
  return others;
}

std::vector<JobBook::JobPtr> JobBook::Suspend() {
  absl::MutexLock lock(&mutex_);
  suspended_ = true;
  std::vector<JobPtr> jobs;
  for (const auto& [id, job] : jobs_) jobs.push_back(job);
  return jobs;
}

JobBook::JobPtr JobBook::FindRequest(const std::string& request_id) const {
  if (request_id.empty()) return nullptr;
  for (const auto& [id, job] : jobs_) {
    if (job->spec().request_id == request_id) return job;
  }
  return nullptr;
}

absl::Status JobBook::CheckLimits(const std::string& request_id, const std::string& owner,
                                  const void* own_place) const {
  int all = 0;
  int own = 0;
  std::set<absl::string_view> counted = {request_id};
  for (const auto& [id, job] : jobs_) {
    if (IsChild(*job)) continue;
    counted.insert(job->spec().request_id);
    if (HasEnded(job->snapshot()->state)) continue;
    ++all;
    own += job->spec().owner == owner ? 1 : 0;
  }
  for (const auto& place : places_) {
    const auto& [request, holder] = place;
    if (&place == own_place || (!counted.insert(request).second && !request.empty())) continue;
    ++all;
    own += holder == owner ? 1 : 0;
  }
  if (own >= max_jobs_per_owner_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        owner.empty() ? "this user" : absl::StrCat("'", owner, "'"), " has ", own,
        " jobs in progress, which is the limit for one user; wait for one to end, or cancel one"));
  }
  if (all < max_jobs_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      all, " jobs are in progress, which is the limit of this server; try again later"));
}

SnapshotOr SharedFromRow(const store::JobRow& row) {
  HONE_ASSIGN_OR_RETURN(JobSnapshot snapshot, FromRow(row));
  return std::make_shared<const JobSnapshot>(std::move(snapshot));
}

SnapshotOr ReadJob(const JobBook& book, store::Store& store, const std::string& id) {
  if (JobBook::JobPtr job = book.Find(id); job != nullptr) return job->snapshot();
  HONE_ASSIGN_OR_RETURN(const store::JobRow row, store.GetJob(id));
  return SharedFromRow(row);
}

bool IsStillConfirmed(store::Store& store, const std::optional<Best>& best) {
  const std::optional<record::Record> stored = StoredRecordOf(store, best);
  return stored && !stored->quarantined;
}

std::shared_ptr<const JobSnapshot> WithQuarantine(store::Store& store,
                                                  std::shared_ptr<const JobSnapshot> job) {
  if (!HasEnded(job->state)) return job;
  std::shared_ptr<JobSnapshot> marked;
  std::optional<record::Record> stored;
  for (const auto member : {&JobSnapshot::best, &JobSnapshot::own_best}) {
    const std::optional<Best>& best = (*job).*member;
    // Mostly, both are the same record.
    if (!stored || !best || stored->id != best->record.id) stored = StoredRecordOf(store, best);
    if (!stored || !stored->quarantined) continue;
    if (marked == nullptr) marked = std::make_shared<JobSnapshot>(*job);
    record::Record& record = ((*marked).*member)->record;
    record.quarantined = true;
    record.quarantine_reason = stored->quarantine_reason;
  }
  if (marked != nullptr) return marked;
  return job;
}

std::shared_ptr<JobActor> JobStarter::Make(JobSnapshot snapshot) const {
  if (snapshot.spec.network.has_value()) {
    return std::make_shared<NetworkJob>(services_, options_, std::move(snapshot));
  }
  return std::make_shared<Job>(services_, options_, std::move(snapshot));
}

absl::StatusOr<JobSnapshot> JobStarter::NewSnapshot(std::string id, JobSpec spec) const {
  JobSnapshot snapshot{.id = std::move(id), .spec = std::move(spec)};
  snapshot.created_unix_ms = absl::ToUnixMillis(services_.clock->Now());
  if (snapshot.spec.network.has_value()) return snapshot;
  const absl::StatusOr<WorkloadInfo> workload =
      services_.environment->Describe(snapshot.spec.workload);
  if (workload.ok()) snapshot.workload_digest = workload->digest;
  // The job keeps this draft, so that its search can be repeated.
  HONE_ASSIGN_OR_RETURN(snapshot.spec.draft_model,
                        NewestDraft(*services_.store, snapshot.spec.target_key));
  return snapshot;
}

void JobStarter::StartNew(JobSnapshot snapshot, Done done, std::shared_ptr<void> place) {
  store::JobRow row = RowOf(snapshot, services_.clock->Now());
  std::shared_ptr<JobActor> job = Make(std::move(snapshot));
  std::optional<SnapshotOr> other = book_.AddNew(job, place.get());
  place.reset();
  if (other.has_value()) return std::move(done)(*std::move(other));
  StoreAndStart(std::move(row), std::move(job), std::move(done));
}

void JobStarter::StartAgain(store::JobRow row, JobSnapshot snapshot, Done done) {
  std::shared_ptr<JobActor> job = Make(std::move(snapshot));
  std::optional<SnapshotOr> other = book_.AddAgain(job);
  if (other.has_value()) return std::move(done)(*std::move(other));
  StoreAndStart(std::move(row), std::move(job), std::move(done));
}

void JobStarter::StoreAndStart(store::JobRow row, std::shared_ptr<JobActor> job, Done done) {
  const bool is_child = !job->spec().parent.empty();  // nobody waits for the answer
  services_.store->PutJob(
      row,
      [this, row, job, done = std::move(done)](absl::Status status) mutable {
        if (status.ok()) {
          job->Start();
          return std::move(done)(job->snapshot());
        }
        book_.Remove(row.id);
        if (!absl::IsAlreadyExists(status) || row.request_id.empty()) {
          return std::move(done)(status);
        }
        // Another call with the same request has just ended. The thread that ends writes must not
        // read.
        services_.executor->Schedule(
            [this, status, request = row.request_id, done = std::move(done)]() mutable {
              absl::StatusOr<store::JobRow> first = services_.store->GetJobByRequest(request);
              if (!first.ok()) return std::move(done)(status);
              std::move(done)(SharedFromRow(*first));
            });
      },
      is_child ? store::WhenFull::kWait : store::WhenFull::kFail);
}

void JobStarter::CreateChild(const std::string& id, JobSpec spec, int64_t allowance,
                             bool skips_default, ChildDone done) {
  if (book_.Find(id) != nullptr) return std::move(done)(absl::OkStatus());
  const absl::Status stored = services_.store->GetJob(id).status();
  // OK: an earlier server has stored the child, but its parent did not note it.
  if (!absl::IsNotFound(stored)) return std::move(done)(stored);
  absl::StatusOr<JobSnapshot> snapshot = NewSnapshot(id, std::move(spec));
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  snapshot->allowance = snapshot->unmeasured = allowance;
  store::JobRow row = RowOf(*snapshot, services_.clock->Now());
  auto job = std::make_shared<Job>(services_, options_, *std::move(snapshot));
  if (skips_default) job->SkipDefault();
  if (!book_.Add(job)) return;
  StoreAndStart(std::move(row), std::move(job),
                [done = std::move(done)](const SnapshotOr& created) mutable {
                  std::move(done)(created.status());
                });
}

void JobStarter::ReopenChild(const std::string& id, int64_t allowance, ChildDone done) {
  absl::StatusOr<store::JobRow> row = services_.store->GetJob(id);
  if (!row.ok()) return std::move(done)(row.status());
  absl::StatusOr<JobSnapshot> snapshot = FromRow(*row);
  if (!snapshot.ok()) return std::move(done)(snapshot.status());
  Reopen(*snapshot);
  snapshot->allowance = std::max(snapshot->allowance, allowance);
  row = RowOf(*snapshot, services_.clock->Now());
  StartAgain(*std::move(row), *std::move(snapshot),
             [done = std::move(done)](const SnapshotOr& started) mutable {
               std::move(done)(started.status());
             });
}

absl::StatusOr<JobStarter::Child> JobStarter::GetChild(const std::string& id) const {
  if (const std::shared_ptr<JobActor> job = book_.Find(id); job != nullptr) {
    const bool begun = job->HasBegun();  // first, because the snapshot may be older otherwise
    return Child{.begun = begun, .snapshot = job->snapshot()};
  }
  HONE_ASSIGN_OR_RETURN(std::shared_ptr<const JobSnapshot> snapshot,
                        ReadJob(book_, *services_.store, id));
  return Child{.snapshot = std::move(snapshot)};
}

std::shared_ptr<Job> JobStarter::FindChild(const std::string& id) const {
  return std::dynamic_pointer_cast<Job>(book_.Find(id));
}

void JobStarter::AllowChild(const std::string& id, int64_t candidates) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Allow(candidates);
}

void JobStarter::ConfirmChild(const std::string& id, Job::ConfirmRequest request) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Confirm(request);
}

void JobStarter::CancelChild(const std::string& id) {
  if (const std::shared_ptr<Job> job = FindChild(id); job != nullptr) job->Cancel(false);
}

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
  const absl::Time now = services_.SteadyNow();
  if (beginning_ != nullptr && !beginning_->HasBegun()) {
    if (now < started_ + kLongest) return;
    spdlog::warn("job {}: has not begun within {}; the next one begins", beginning_->id(),
                 SecondsText(kLongest));
  }
  beginning_ = std::move(waiting_.front());
  waiting_.pop_front();
  started_ = now;
  beginning_->Start();
}

void JobTurns::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
}

}  // namespace hone::job
