#include "server/store/database_store.h"

#include <memory>

#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "server/store/retention.h"
#include "server/store/tables.h"

namespace hone::store {

size_t DatabaseStore::BytesOf(const record::Record& record) {
  return kRowBytes + record.result.detail.size() + record.result.counters.size() +
         8 * (record.result.samples_ns.size() + record.candidate.decisions.size());
}

template <typename Result>
void DatabaseStore::WriteForResult(absl::AnyInvocable<absl::StatusOr<Result>(Connection&)> write,
                                   absl::AnyInvocable<void(absl::StatusOr<Result>) &&> done,
                                   size_t bytes, WhenFull when_full) {
  // The second callback runs after the last run of the first.
  auto result = std::make_shared<Result>();
  Write(
      [result, write = std::move(write)](Connection& connection) mutable -> absl::Status {
        HONE_ASSIGN_OR_RETURN(*result, write(connection));
        return absl::OkStatus();
      },
      [result, done = std::move(done)](absl::Status status) mutable {
        if (status.ok()) {
          std::move(done)(*std::move(result));
        } else {
          std::move(done)(std::move(status));
        }
      },
      bytes, when_full);
}

void DatabaseStore::PutText(const std::string& digest, const std::string& text, Done done) {
  Write([this, digest, text](Connection& c) { return InsertText(c, digest, text, NowUnixMs()); },
        std::move(done), kRowBytes + text.size(), WhenFull::kWait);
}

absl::StatusOr<std::string> DatabaseStore::GetText(const std::string& digest) {
  return Get([&](Connection& c) { return SelectText(c, digest); });
}

void DatabaseStore::Append(record::Record record, const JobStep& step,
                           absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) {
  const size_t bytes = BytesOf(record);
  WriteForResult<record::Record>(
      [record = std::move(record), step](Connection& c) mutable -> absl::StatusOr<record::Record> {
        HONE_RETURN_IF_ERROR(CheckStep(c, step));
        HONE_RETURN_IF_ERROR(InsertRecord(c, record));
        return record;
      },
      std::move(done), bytes);
}

absl::StatusOr<std::vector<record::Record>> DatabaseStore::Query(const RecordQuery& query) {
  return Get([&](Connection& c) { return QueryRecords(c, query); });
}

void DatabaseStore::PublishBest(int64_t record_id, std::optional<int64_t> incumbent, Done done) {
  Write([this, record_id,
         incumbent](Connection& c) { return InsertBest(c, record_id, incumbent, NowUnixMs()); },
        std::move(done), kRowBytes, WhenFull::kWait);
}

void DatabaseStore::Quarantine(const std::string& workload_digest, const std::string& target,
                               const record::Candidate& candidate, int64_t last_record,
                               const std::string& reason, Done done) {
  Write(
      [=, this](Connection& c) {
        return QuarantineRecords(c, workload_digest, target, candidate, last_record, reason,
                                 NowUnixMs());
      },
      std::move(done), kRowBytes, WhenFull::kWait);
}

absl::StatusOr<BestRow> DatabaseStore::LookupBest(const BestQuery& query) {
  return Get([&](Connection& c) { return SelectBest(c, query); });
}

void DatabaseStore::Forget(const TaskKey& task, const std::string& reason,
                           absl::AnyInvocable<void(absl::StatusOr<Forgotten>) &&> done) {
  WriteForResult<Forgotten>(
      [this, task, reason](Connection& c) { return ForgetTask(c, task, reason, NowUnixMs()); },
      std::move(done), kRowBytes, WhenFull::kFail);
}

void DatabaseStore::PinBest(const TaskKey& task, int64_t record, const std::string& by, Done done) {
  Write([this, task, record,
         by](Connection& c) { return InsertPinnedBest(c, task, record, {by, NowUnixMs()}); },
        std::move(done), kRowBytes, WhenFull::kFail);
}

void DatabaseStore::UnpinBest(const TaskKey& task, Done done) {
  Write([task](Connection& c) { return RemovePin(c, task); }, std::move(done), kRowBytes,
        WhenFull::kFail);
}

absl::StatusOr<std::vector<BestRow>> DatabaseStore::PinnedBests() {
  return Get([](Connection& c) { return SelectPinnedBests(c); });
}

void DatabaseStore::PutArtifact(const std::string& digest, std::string bytes, Done done) {
  const size_t size = kRowBytes + bytes.size();
  Write([this, digest, bytes = std::move(bytes)](
            Connection& c) { return InsertArtifact(c, digest, bytes, NowUnixMs()); },
        std::move(done), size, WhenFull::kWait);
}

absl::StatusOr<std::string> DatabaseStore::GetArtifact(const std::string& digest) {
  return Get([&](Connection& c) { return SelectArtifact(c, digest); });
}

void DatabaseStore::PutJob(JobRow job, Done done, WhenFull when_full) {
  const size_t bytes = kRowBytes + job.request.size() + job.summary.size();
  Write([job = std::move(job)](Connection& c) { return UpsertJob(c, job); }, std::move(done), bytes,
        when_full);
}

absl::StatusOr<JobRow> DatabaseStore::GetJob(const std::string& id) {
  return Get([&](Connection& c) { return SelectJob(c, id); });
}

absl::StatusOr<JobRow> DatabaseStore::GetJobByRequest(const std::string& request_id) {
  return Get([&](Connection& c) { return SelectJobByRequest(c, request_id); });
}

absl::StatusOr<std::vector<JobRow>> DatabaseStore::ListJobs(int page_size,
                                                            const std::string& after_id) {
  return Get([&](Connection& c) { return SelectJobs(c, page_size, after_id); });
}

absl::StatusOr<std::vector<JobRow>> DatabaseStore::UnfinishedJobs() {
  return Get([](Connection& c) { return SelectUnfinishedJobs(c); });
}

void DatabaseStore::AppendEvent(JobEvent event, Done done) {
  const size_t bytes = kRowBytes + event.payload.size();
  Write([event = std::move(event)](Connection& c) { return InsertEvent(c, event); },
        std::move(done), bytes, WhenFull::kWait);
}

absl::StatusOr<std::vector<JobEvent>> DatabaseStore::Events(const std::string& job_id) {
  return Get([&](Connection& c) { return SelectEvents(c, job_id); });
}

void DatabaseStore::PutModel(ModelRow model,
                             absl::AnyInvocable<void(absl::StatusOr<int64_t>) &&> done) {
  const size_t bytes =
      kRowBytes + model.metrics.size() + model.target_text.size() + model.bytes.size();
  WriteForResult<int64_t>(
      [model = std::move(model)](Connection& c) { return InsertModel(c, model); }, std::move(done),
      bytes);
}

absl::StatusOr<ModelRow> DatabaseStore::GetModel(const ModelKey& key) {
  return Get([&](Connection& c) { return SelectModel(c, key); });
}

absl::StatusOr<ModelRow> DatabaseStore::GetModelById(int64_t id) {
  return Get([&](Connection& c) { return SelectModelById(c, id); });
}

absl::StatusOr<std::vector<ModelRow>> DatabaseStore::ListModels(const std::string& name,
                                                                const std::string& target,
                                                                bool with_earlier) {
  return Get([&](Connection& c) { return SelectModels(c, name, target, with_earlier); });
}

void DatabaseStore::PutCached(CachedRow row, Done done) {
  const size_t bytes = kRowBytes + row.name.size() + row.environment.size() + row.value.size();
  Write(
      [this, row = std::move(row)](Connection& c) mutable {
        row.put_unix_ms = NowUnixMs();
        return InsertCached(c, row, kMostCached);
      },
      std::move(done), bytes, WhenFull::kFail);
}

absl::StatusOr<CachedRow> DatabaseStore::GetCached(const std::string& name,
                                                   const std::string& environment) {
  return Get([&](Connection& c) { return SelectCached(c, name, environment); });
}

void DatabaseStore::ChangeStanding(StandingChange change, Done done) {
  const size_t bytes = kRowBytes + change.refused.value_or("").size();
  Write([change = std::move(change)](Connection& c) { return MergeStanding(c, change); },
        std::move(done), bytes, WhenFull::kFail);
}

absl::StatusOr<std::vector<WorkerStanding>> DatabaseStore::Standings() {
  return Get([](Connection& c) { return SelectStandings(c); });
}

void DatabaseStore::PutWorker(KnownWorker worker, Done done) {
  Write([worker = std::move(worker)](Connection& c) { return UpsertWorker(c, worker); },
        std::move(done), kRowBytes, WhenFull::kFail);
}

absl::StatusOr<std::vector<KnownWorker>> DatabaseStore::Workers() {
  return Get([](Connection& c) { return SelectWorkers(c); });
}

absl::StatusOr<std::string> DatabaseStore::Identity() {
  return Get([](Connection& c) { return SelectIdentity(c); });
}

void DatabaseStore::Import(ImportBatch batch,
                           absl::AnyInvocable<void(absl::StatusOr<ImportReport>) &&> done) {
  const size_t bytes = kRowBytes * (1 + batch.records.size());
  WriteForResult<ImportReport>(
      [this, batch = std::move(batch)](Connection& c) { return ImportRows(c, batch, NowUnixMs()); },
      std::move(done), bytes, WhenFull::kFail);
}

absl::Status DatabaseStore::WriteNow(const std::function<absl::Status(Connection&)>& work) {
  absl::Notification written;
  absl::Status result;
  Write([&work](Connection& c) { return work(c); },
        [&](absl::Status status) {
          result = std::move(status);
          written.Notify();
        },
        kRowBytes, WhenFull::kFail);
  written.WaitForNotification();
  return result;
}

absl::StatusOr<CompactReport> DatabaseStore::Compact(const CompactOptions& options,
                                                     const std::function<bool()>& cancelled) {
  const RetentionAccess access{
      .read =
          [this](const RetentionAccess::Work& work) {
            return Read([&](Connection& c) { return work(c); });
          },
      .write = [this](const RetentionAccess::Work& work) { return WriteNow(work); },
      .free_space = [&] { return FreeSpace(cancelled); },
      .cancelled = cancelled};
  return RemoveOldRows(access, options);
}

}  // namespace hone::store
