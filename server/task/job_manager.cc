#include "server/task/job_manager.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/task/job_codec.h"
#include "spdlog/spdlog.h"

namespace hone::task {
namespace {

constexpr int kPage = 200;

absl::StatusOr<JobSnapshot> FromRow(const store::JobRow& row) {
  JobSnapshot snapshot;
  if (!row.summary.empty()) {
    HONE_ASSIGN_OR_RETURN(snapshot, DecodeSnapshot(row.summary));
  }
  snapshot.id = row.id;
  HONE_ASSIGN_OR_RETURN(snapshot.spec, DecodeSpec(row.request));
  HONE_ASSIGN_OR_RETURN(snapshot.state, JobStateFromName(row.state));
  snapshot.error = row.error;
  snapshot.created_unix_ms = row.created_unix_ms;
  return snapshot;
}

SnapshotOr SharedFromRow(const store::JobRow& row) {
  HONE_ASSIGN_OR_RETURN(JobSnapshot snapshot, FromRow(row));
  return std::make_shared<const JobSnapshot>(std::move(snapshot));
}

}  // namespace

JobManager::JobManager(const JobServices& services, JobOptions options)
    : services_(services), options_(std::move(options)) {}

absl::Status JobManager::Restore() {
  std::vector<std::shared_ptr<Job>> restored;
  std::string after;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const std::vector<store::JobRow> page,
                          services_.store->ListJobs(kPage, after));
    for (const store::JobRow& row : page) {
      after = row.id;
      int64_t number = 0;
      absl::MutexLock lock(&mutex_);
      if (absl::SimpleAtoi(row.id, &number)) next_id_ = std::max(next_id_, number + 1);
      absl::StatusOr<JobSnapshot> snapshot = FromRow(row);
      if (!snapshot.ok()) {
        spdlog::error("job {} cannot be read: {}", row.id, snapshot.status().ToString());
        continue;
      }
      if (HasEnded(snapshot->state)) continue;
      auto job = std::make_shared<Job>(services_, options_, *std::move(snapshot));
      jobs_[row.id] = job;
      if (!row.request_id.empty()) requests_[row.request_id] = row.id;
      restored.push_back(std::move(job));
    }
    if (static_cast<int>(page.size()) < kPage) break;
  }
  for (const std::shared_ptr<Job>& job : restored) {
    spdlog::info("job {}: goes on", job->snapshot()->id);
    job->Start();
  }
  return absl::OkStatus();
}

void JobManager::Create(JobSpec spec, absl::AnyInvocable<void(SnapshotOr) &&> done) {
  if (!spec.request_id.empty()) {
    absl::StatusOr<store::JobRow> row = services_.store->GetJobByRequest(spec.request_id);
    if (row.ok()) return std::move(done)(Get(row->id));
    if (!absl::IsNotFound(row.status())) return std::move(done)(row.status());
  }
  std::shared_ptr<Job> job;
  SnapshotOr known = absl::UnavailableError("the server is shutting down");
  store::JobRow row;
  {
    absl::MutexLock lock(&mutex_);
    auto request = requests_.find(spec.request_id);
    if (!spec.request_id.empty() && request != requests_.end()) {
      known = jobs_.at(request->second)->snapshot();  // being created by another call
    } else if (!suspended_) {
      JobSnapshot snapshot;
      snapshot.id = absl::StrCat(next_id_++);
      snapshot.spec = std::move(spec);
      snapshot.created_unix_ms = absl::ToUnixMillis(services_.clock->Now());
      row = {.id = snapshot.id,
             .request_id = snapshot.spec.request_id,
             .request = EncodeSpec(snapshot.spec),
             .state = std::string(JobStateName(snapshot.state)),
             .created_unix_ms = snapshot.created_unix_ms,
             .updated_unix_ms = snapshot.created_unix_ms};
      if (!row.request_id.empty()) requests_[row.request_id] = row.id;
      job = std::make_shared<Job>(services_, options_, std::move(snapshot));
      jobs_[row.id] = job;
    }
  }
  if (job == nullptr) return std::move(done)(std::move(known));
  services_.store->PutJob(row,
                          [this, row, job, done = std::move(done)](absl::Status status) mutable {
                            if (status.ok()) {
                              job->Start();
                              return std::move(done)(job->snapshot());
                            }
                            {
                              absl::MutexLock lock(&mutex_);
                              jobs_.erase(row.id);
                              requests_.erase(row.request_id);
                            }
                            std::move(done)(status);
                          });
}

std::shared_ptr<Job> JobManager::Find(const std::string& id) const {
  absl::MutexLock lock(&mutex_);
  auto found = jobs_.find(id);
  return found == jobs_.end() ? nullptr : found->second;
}

SnapshotOr JobManager::Get(const std::string& id) const {
  if (std::shared_ptr<Job> job = Find(id); job != nullptr) return job->snapshot();
  HONE_ASSIGN_OR_RETURN(const store::JobRow row, services_.store->GetJob(id));
  return SharedFromRow(row);
}

absl::StatusOr<std::vector<std::shared_ptr<const JobSnapshot>>> JobManager::List(
    int page_size, const std::string& after_id) const {
  HONE_ASSIGN_OR_RETURN(const std::vector<store::JobRow> page,
                        services_.store->ListJobs(page_size, after_id));
  std::vector<std::shared_ptr<const JobSnapshot>> list;
  for (const store::JobRow& row : page) {
    if (std::shared_ptr<Job> job = Find(row.id); job != nullptr) {
      list.push_back(job->snapshot());
      continue;
    }
    HONE_ASSIGN_OR_RETURN(list.emplace_back(), SharedFromRow(row));
  }
  return list;
}

SnapshotOr JobManager::Cancel(const std::string& id, bool confirm) {
  if (std::shared_ptr<Job> job = Find(id); job != nullptr) {
    job->Cancel(confirm);
    return job->snapshot();
  }
  return Get(id);
}

std::vector<std::string> JobManager::Unfinished() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> ids;
  for (const auto& [id, job] : jobs_) {
    if (!HasEnded(job->snapshot()->state)) ids.push_back(id);
  }
  return ids;
}

void JobManager::Tick() {
  std::vector<std::shared_ptr<Job>> jobs;
  {
    absl::MutexLock lock(&mutex_);
    for (auto it = jobs_.begin(); it != jobs_.end();) {
      if (it->second->IsOver()) {
        requests_.erase(it->second->snapshot()->spec.request_id);
        it = jobs_.erase(it);
        continue;
      }
      jobs.push_back(it->second);
      ++it;
    }
  }
  for (const std::shared_ptr<Job>& job : jobs) job->Tick();
}

void JobManager::Suspend() {
  absl::MutexLock lock(&mutex_);
  suspended_ = true;
  for (const auto& [id, job] : jobs_) job->Suspend();
}

}  // namespace hone::task
