#include "server/job/job_book.h"

#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/record/processes.h"
#include "server/job/actor/job_codec.h"

namespace hone::job {
namespace {

absl::Status ServerEnds() { return absl::UnavailableError("the server is shutting down"); }

bool IsChild(const JobActor& job) { return !job.spec().parent.empty(); }

// Returns the record of a confirmed best as it is in the store; nullopt if it is not there.
std::optional<record::Record> StoredRecordOf(store::Store& store, const std::optional<Best>& best) {
  if (!best || !record::IsConfirmed(best->record)) return std::nullopt;
  absl::StatusOr<std::vector<record::Record>> stored =
      store.Query({.page_size = 1, .after_id = best->record.id - 1});
  if (!stored.ok() || stored->empty() || stored->front().id != best->record.id) {
    return std::nullopt;
  }
  return std::move(stored->front());
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

}  // namespace hone::job
