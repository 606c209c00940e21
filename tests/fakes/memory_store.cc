#include "tests/fakes/memory_store.h"

#include <algorithm>
#include <utility>

#include "common/record/processes.h"
#include "server/store/standing_change.h"

namespace hone::store {
namespace {

bool HasEnded(const JobRow& row) {
  return row.state == "done" || row.state == "cancelled" || row.state == "failed";
}

bool IsOf(const record::Record& record, const TaskKey& task) {
  return record.workload_digest == task.workload_digest && record.target == task.target &&
         record.tolerance == task.tolerance;
}

TaskKey TaskOf(const record::Record& record) {
  return {record.workload_digest, record.target, record.tolerance};
}

}  // namespace

void MemoryStore::Hold() {
  absl::MutexLock lock(&mutex_);
  held_ = true;
}

void MemoryStore::Commit() {
  while (true) {
    absl::AnyInvocable<void(absl::Status) &&> write;
    absl::Status status;
    {
      absl::MutexLock lock(&mutex_);
      if (writes_.empty()) return;
      write = std::move(writes_.front());
      writes_.pop_front();
      status = failure_;
    }
    std::move(write)(status);
  }
}

void MemoryStore::Crash() {
  std::deque<absl::AnyInvocable<void(absl::Status) &&>> lost;
  absl::MutexLock lock(&mutex_);
  std::swap(lost, writes_);
  held_ = false;
  for (JobRow& row : jobs_) row.lease_until_unix_ms = 0;
}

void MemoryStore::FailWrites(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  failure_ = std::move(status);
}

void MemoryStore::FailProposals(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  proposal_failure_ = std::move(status);
}

void MemoryStore::Write(absl::AnyInvocable<void(absl::Status) &&> write) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (held_) {
      writes_.push_back(std::move(write));
      return;
    }
    status = failure_;
  }
  std::move(write)(status);
}

void MemoryStore::PutText(const std::string& digest, const std::string& text, Done done) {
  Write([this, digest, text, done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      texts_.emplace(digest, text);
    }
    std::move(done)(status);
  });
}

absl::StatusOr<std::string> MemoryStore::GetText(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  auto found = texts_.find(digest);
  if (found == texts_.end()) return absl::NotFoundError("no such text");
  return found->second;
}

absl::Status MemoryStore::CheckFence(const JobFence& fence) {
  if (fence.job_id.empty()) return absl::OkStatus();
  for (const JobRow& row : jobs_) {
    if (row.id != fence.job_id || row.fence != fence.fence) continue;
    const auto events = events_.find(row.id);
    const int64_t stored =
        events == events_.end() ? 0 : static_cast<int64_t>(events->second.size());
    if (fence.event < stored) return absl::OkStatus();
    return absl::FailedPreconditionError("its event is not stored");
  }
  return absl::AbortedError("claimed by another replica");
}

void MemoryStore::Append(record::Record record, const JobFence& fence,
                         absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) {
  Write([this, record = std::move(record), fence,
         done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      status = CheckFence(fence);
      if (status.ok()) {
        record.id = static_cast<int64_t>(records_.size()) + 1;
        records_.push_back(record);
      }
    }
    if (!status.ok()) return std::move(done)(status);
    std::move(done)(std::move(record));
  });
}

bool MemoryStore::IsUnpublishedBest(const record::Record& record) const {
  const auto confirmed = [&](const record::Record& other) {
    return IsOf(other, TaskOf(record)) && other.policy.name == "confirm" && !other.quarantined &&
           other.result.outcome == record::Outcome::kOk && other.result.processes > 0;
  };
  return confirmed(record) && Published(TaskOf(record)) == 0 &&
         std::none_of(records_.begin(), records_.end(), [&](const record::Record& other) {
           return confirmed(other) && other.result.latency_ns < record.result.latency_ns;
         });
}

absl::StatusOr<std::vector<record::Record>> MemoryStore::Query(const RecordQuery& query) {
  absl::MutexLock lock(&mutex_);
  std::vector<record::Record> found;
  for (const record::Record& record : records_) {
    const bool published =
        std::find(published_.begin(), published_.end(), record.id) != published_.end();
    if (record.id > query.after_id && (query.before_id == 0 || record.id < query.before_id) &&
        (query.workload_digest.empty() || query.workload_digest == record.workload_digest) &&
        (query.target.empty() || query.target == record.target) &&
        (query.op.empty() || query.op == record.op) && (!query.best_only || published) &&
        (!query.unpublished_best || IsUnpublishedBest(record)) &&
        (query.job_id.empty() || query.job_id == record.job_id)) {
      found.push_back(record);
    }
  }
  if (query.newest_first) std::reverse(found.begin(), found.end());
  if (static_cast<int>(found.size()) > query.page_size) found.resize(query.page_size);
  return found;
}

void MemoryStore::PublishBest(int64_t record_id, std::optional<int64_t> incumbent,
                              const JobFence& fence, Done done) {
  Write([this, record_id, incumbent, fence, done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      const record::Record& record = records_.at(record_id - 1);
      const int64_t published = Published(TaskOf(record));
      status = CheckFence(fence);
      status.Update(CheckPublishable(record));
      if (!status.ok() || published == record_id) {
        // Another replica has claimed the job, or there is nothing to do.
      } else if (pins_.contains(published)) {
        status = absl::AlreadyExistsError("the best is pinned");
      } else if (incumbent.has_value() && *incumbent != published) {
        status = absl::AlreadyExistsError("another best is published");
      } else {
        std::erase(published_, published);
        published_.push_back(record_id);
      }
    }
    std::move(done)(status);
  });
}

void MemoryStore::Quarantine(const std::string& workload_digest, const std::string& target,
                             const record::Candidate& candidate, int64_t last_record,
                             const std::string& reason, const JobFence& fence, Done done) {
  Write([=, this, done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      status = CheckFence(fence);
      for (record::Record& record : records_) {
        if (!status.ok() || record.id > last_record || record.workload_digest != workload_digest ||
            record.target != target || record.candidate != candidate) {
          continue;
        }
        if (!record.quarantined) record.quarantine_reason = reason;
        record.quarantined = true;
        Withdraw(record.id);
      }
    }
    std::move(done)(status);
  });
}

int64_t MemoryStore::Published(const TaskKey& task) const {
  for (const int64_t id : published_) {
    if (IsOf(records_.at(id - 1), task)) return id;
  }
  return 0;
}

BestRow MemoryStore::MakeRow(int64_t id) const {
  const record::Record& record = records_.at(id - 1);
  const auto pin = pins_.find(id);
  return {record, texts_.at(record.workload_digest), texts_.at(record.candidate.space_digest),
          pin == pins_.end() ? Pin() : pin->second};
}

void MemoryStore::Withdraw(int64_t id) {
  std::erase(published_, id);
  pins_.erase(id);
}

absl::Status MemoryStore::CheckPublishable(const record::Record& record) const {
  const bool publishable = record.policy.name == "confirm" && !record.quarantined &&
                           record.result.outcome == record::Outcome::kOk &&
                           artifacts_.contains(record.result.artifact_digest) &&
                           texts_.contains(record.candidate.space_digest) &&
                           texts_.contains(record.workload_digest);
  return publishable ? absl::OkStatus() : absl::FailedPreconditionError("not to be published");
}

absl::StatusOr<BestRow> MemoryStore::LookupBest(const BestQuery& query) {
  absl::MutexLock lock(&mutex_);
  const int64_t id = Published({query.workload_digest, query.target, query.tolerance});
  if (id == 0) return absl::NotFoundError("no best is published");
  return MakeRow(id);
}

void MemoryStore::Forget(const TaskKey& task, const std::string& reason,
                         absl::AnyInvocable<void(absl::StatusOr<Forgotten>) &&> done) {
  Write([=, this, done = std::move(done)](absl::Status status) mutable {
    Forgotten forgotten;
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      if (const int64_t id = Published(task); id > 0) {
        forgotten.bests.push_back(records_.at(id - 1));
        Withdraw(id);
      }
      for (record::Record& record : records_) {
        if (!IsOf(record, task) || record.quarantined) continue;
        record.quarantined = true;
        record.quarantine_reason = reason;
        ++forgotten.records;
      }
      if (forgotten.records == 0) status = absl::NotFoundError("nothing is known");
    }
    if (!status.ok()) return std::move(done)(status);
    std::move(done)(std::move(forgotten));
  });
}

void MemoryStore::PinBest(const TaskKey& task, int64_t record, const std::string& by, Done done) {
  Write([=, this, done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      const int64_t published = Published(task);
      const int64_t id = record == 0 ? published : record;
      if (id < 1 || id > static_cast<int64_t>(records_.size())) {
        status = absl::NotFoundError("no such record");
      } else if (!IsOf(records_.at(id - 1), task)) {
        status = absl::InvalidArgumentError("the record is of another task");
      } else {
        status = CheckPublishable(records_.at(id - 1));
      }
      if (status.ok()) {
        Withdraw(published);
        published_.push_back(id);
        pins_[id] = {.by = by, .unix_ms = 1};
      }
    }
    std::move(done)(status);
  });
}

void MemoryStore::UnpinBest(const TaskKey& task, Done done) {
  Write([=, this, done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      if (pins_.erase(Published(task)) == 0) status = absl::NotFoundError("no best is pinned");
    }
    std::move(done)(status);
  });
}

absl::StatusOr<std::vector<BestRow>> MemoryStore::PinnedBests() {
  absl::MutexLock lock(&mutex_);
  std::vector<BestRow> rows;
  for (const int64_t id : published_) {
    if (pins_.contains(id)) rows.push_back(MakeRow(id));
  }
  return rows;
}

void MemoryStore::PutArtifact(const std::string& digest, std::string bytes, Done done) {
  Write([this, digest, bytes = std::move(bytes),
         done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      artifacts_[digest] = std::move(bytes);
    }
    std::move(done)(status);
  });
}

absl::StatusOr<std::string> MemoryStore::GetArtifact(const std::string& digest) {
  absl::MutexLock lock(&mutex_);
  auto found = artifacts_.find(digest);
  if (found == artifacts_.end()) return absl::NotFoundError("no such artifact");
  return found->second;
}

void MemoryStore::BeforePutJob(std::function<void()> call) {
  absl::MutexLock lock(&mutex_);
  before_put_job_ = std::move(call);
}

void MemoryStore::PutJob(JobRow job, Done done) {
  std::function<void()> before;
  {
    absl::MutexLock lock(&mutex_);
    std::swap(before, before_put_job_);
  }
  if (before != nullptr) before();
  Write([this, job = std::move(job), done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      auto old = std::find_if(jobs_.begin(), jobs_.end(),
                              [&](const JobRow& row) { return row.id == job.id; });
      if (old != jobs_.end() && old->fence != job.fence) {
        status = absl::AbortedError("claimed by another replica");
      } else if (old != jobs_.end()) {
        job.replica = old->replica;
        job.lease_until_unix_ms = old->lease_until_unix_ms;
        *old = std::move(job);
      } else {
        jobs_.push_back(std::move(job));
      }
    }
    std::move(done)(status);
  });
}

absl::StatusOr<JobRow> MemoryStore::GetJob(const std::string& id) {
  absl::MutexLock lock(&mutex_);
  for (const JobRow& row : jobs_) {
    if (row.id == id) return row;
  }
  return absl::NotFoundError("no such job");
}

absl::StatusOr<JobRow> MemoryStore::GetJobByRequest(const std::string& request_id) {
  absl::MutexLock lock(&mutex_);
  for (const JobRow& row : jobs_) {
    if (row.request_id == request_id) return row;
  }
  return absl::NotFoundError("no such job");
}

absl::StatusOr<std::vector<JobRow>> MemoryStore::ListJobs(int page_size,
                                                          const std::string& after_id) {
  absl::MutexLock lock(&mutex_);
  std::vector<JobRow> page;
  bool after = after_id.empty();
  for (auto row = jobs_.rbegin(); row != jobs_.rend(); ++row) {
    if (after && static_cast<int>(page.size()) < page_size) page.push_back(*row);
    after = after || row->id == after_id;
  }
  if (!after) return absl::NotFoundError("no such job");
  return page;
}

absl::StatusOr<int64_t> MemoryStore::NextJobNumber() {
  absl::MutexLock lock(&mutex_);
  return ++job_number_;
}

void MemoryStore::ClaimJobs(const JobClaim& claim, int limit,
                            absl::AnyInvocable<void(absl::StatusOr<std::vector<JobRow>>) &&> done) {
  Write([this, claim, limit, done = std::move(done)](absl::Status status) mutable {
    if (!status.ok()) return std::move(done)(status);
    std::vector<JobRow> claimed;
    {
      absl::MutexLock lock(&mutex_);
      for (JobRow& row : jobs_) {
        if (HasEnded(row) || row.lease_until_unix_ms >= claim.now_unix_ms) continue;
        if (static_cast<int>(claimed.size()) == limit) break;
        row.replica = claim.replica;
        row.lease_until_unix_ms = claim.until_unix_ms;
        ++row.fence;
        claimed.push_back(row);
      }
    }
    std::move(done)(std::move(claimed));
  });
}

void MemoryStore::RenewJobs(
    const JobClaim& claim,
    absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>) &&> done) {
  Write([this, claim, done = std::move(done)](absl::Status status) mutable {
    if (!status.ok()) return std::move(done)(status);
    std::vector<std::string> held;
    {
      absl::MutexLock lock(&mutex_);
      for (JobRow& row : jobs_) {
        if (row.replica != claim.replica || HasEnded(row)) continue;
        row.lease_until_unix_ms = claim.until_unix_ms;
        held.push_back(row.id);
      }
    }
    std::move(done)(std::move(held));
  });
}

void MemoryStore::ReleaseJob(const std::string& id, int64_t fence, Done done) {
  Write([this, id, fence, done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      for (JobRow& row : jobs_) {
        if (row.id != id || row.fence != fence) continue;
        row.replica.clear();
        row.lease_until_unix_ms = 0;
      }
    }
    std::move(done)(status);
  });
}

void MemoryStore::Import(ImportBatch,
                         absl::AnyInvocable<void(absl::StatusOr<ImportReport>) &&> done) {
  std::move(done)(absl::UnimplementedError("kept in memory"));
}

absl::StatusOr<BackupReport> MemoryStore::Backup(const std::string&, const std::function<bool()>&) {
  return absl::UnimplementedError("kept in memory");
}

absl::StatusOr<CompactReport> MemoryStore::Compact(const CompactOptions&,
                                                   const std::function<bool()>&) {
  return absl::UnimplementedError("kept in memory");
}

void MemoryStore::AppendEvent(JobEvent event, Done done) {
  Write([this, event = std::move(event), done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      std::vector<JobEvent>& events = events_[event.job_id];
      const bool fenced_off = std::any_of(jobs_.begin(), jobs_.end(), [&](const JobRow& row) {
        return row.id == event.job_id && row.fence != event.fence;
      });
      if (fenced_off) {
        status = absl::AbortedError("claimed by another replica");
      } else if (event.number != static_cast<int64_t>(events.size())) {
        status = absl::FailedPreconditionError("the number leaves a gap");
      } else if (event.kind == "propose" && !proposal_failure_.ok()) {
        status = proposal_failure_;
      } else {
        events.push_back(std::move(event));
      }
    }
    std::move(done)(status);
  });
}

absl::StatusOr<std::vector<JobEvent>> MemoryStore::Events(const std::string& job_id) {
  absl::MutexLock lock(&mutex_);
  return events_[job_id];
}

void MemoryStore::PutModel(ModelRow model,
                           absl::AnyInvocable<void(absl::StatusOr<int64_t>) &&> done) {
  Write([this, model = std::move(model), done = std::move(done)](absl::Status status) mutable {
    if (!status.ok()) return std::move(done)(status);
    int64_t id = 0;
    {
      absl::MutexLock lock(&mutex_);
      id = static_cast<int64_t>(models_.size()) + 1;
      model.id = id;
      model.size = static_cast<int64_t>(model.bytes.size());
      models_.push_back(std::move(model));
    }
    std::move(done)(id);
  });
}

absl::StatusOr<ModelRow> MemoryStore::GetModel(const ModelKey& key) {
  absl::MutexLock lock(&mutex_);
  for (auto model = models_.rbegin(); model != models_.rend(); ++model) {
    if (model->key == key) return *model;
  }
  return absl::NotFoundError("no such model");
}

absl::StatusOr<ModelRow> MemoryStore::GetModelById(int64_t id) {
  absl::MutexLock lock(&mutex_);
  if (id < 1 || id > static_cast<int64_t>(models_.size())) {
    return absl::NotFoundError("no such model");
  }
  return models_[id - 1];
}

absl::StatusOr<std::vector<ModelRow>> MemoryStore::ListModels(const std::string& name,
                                                              const std::string& target) {
  absl::MutexLock lock(&mutex_);
  std::vector<ModelRow> newest;
  for (auto model = models_.rbegin(); model != models_.rend(); ++model) {
    const bool asked = (name.empty() || model->key.name == name) &&
                       (target.empty() || model->key.target == target);
    const bool seen = std::any_of(newest.begin(), newest.end(),
                                  [&](const ModelRow& row) { return row.key == model->key; });
    if (!asked || seen) continue;
    newest.push_back(*model);
    newest.back().bytes.clear();
  }
  return newest;
}

void MemoryStore::ChangeStanding(StandingChange change, Done done) {
  Write([this, change = std::move(change), done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      WorkerStanding& standing = standings_[change.worker_id];
      Merge(change, standing);
      if (IsGood(standing)) standings_.erase(change.worker_id);
    }
    std::move(done)(status);
  });
}

absl::StatusOr<std::vector<WorkerStanding>> MemoryStore::Standings() {
  absl::MutexLock lock(&mutex_);
  std::vector<WorkerStanding> all;
  for (const auto& [id, standing] : standings_) all.push_back(standing);
  return all;
}

void MemoryStore::PutWorker(KnownWorker worker, Done done) {
  Write([this, worker = std::move(worker), done = std::move(done)](absl::Status status) mutable {
    if (status.ok() && worker.worker_id.empty()) {
      status = absl::InvalidArgumentError("a worker needs a name");
    }
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      std::erase_if(workers_, [&](const auto& entry) {
        return entry.second.seen_unix_ms <= worker.seen_unix_ms - kWorkerMemoryMs;
      });
      workers_[worker.worker_id] = worker;
    }
    std::move(done)(status);
  });
}

void MemoryStore::ForgetWorker(const std::string& worker_id, Done done) {
  Write([this, worker_id, done = std::move(done)](absl::Status status) mutable {
    if (status.ok()) {
      absl::MutexLock lock(&mutex_);
      workers_.erase(worker_id);
    }
    std::move(done)(status);
  });
}

absl::StatusOr<std::vector<KnownWorker>> MemoryStore::Workers() {
  absl::MutexLock lock(&mutex_);
  std::vector<KnownWorker> all;
  for (const auto& [id, worker] : workers_) all.push_back(worker);
  return all;
}

absl::Status MemoryStore::Flush() {
  Commit();
  absl::MutexLock lock(&mutex_);
  return failure_;
}

}  // namespace hone::store
