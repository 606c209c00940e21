#include "server/store/postgres_store.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/job_columns.h"
#include "server/store/postgres_reader_pool.h"
#include "server/store/postgres_schema.h"
#include "server/store/postgres_tables.h"
#include "server/store/record_columns.h"
#include "server/store/standing_columns.h"

namespace hone::store {
namespace {

constexpr size_t kRowBytes = 512;  // what a queued write holds beside its texts, about

absl::Status CheckDigest(const std::string& digest) {
  return digest.empty() ? absl::InvalidArgumentError("the digest is empty") : absl::OkStatus();
}

absl::Status Ignore(PostgresRows&) { return absl::OkStatus(); }

class PostgresStore final : public Store {
 public:
  PostgresStore(std::string place, std::unique_ptr<PostgresConnection> writing,
                const PostgresStoreOptions& options)
      : clock_(options.clock != nullptr ? *options.clock : system_clock_),
        readers_(place, options.max_readers),
        writer_(std::move(place), std::move(writing), options.writer) {}
  // Callbacks of the last writes may still read.
  ~PostgresStore() override { writer_.Stop(); }

  void PutText(const std::string& digest, const std::string& text, Done done) override {
    writer_.Enqueue(postgres::InsertText(digest, text, NowUnixMs()), Ignore, std::move(done),
                    kRowBytes + text.size(), CheckDigest(digest));
  }
  absl::StatusOr<std::string> GetText(const std::string& digest) override {
    return readers_.With([&](PostgresConnection& c) { return postgres::SelectText(c, digest); });
  }

  void Append(record::Record record, const JobFence& fence,
              absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) override {
    const size_t bytes = kRowBytes + record.result.detail.size() +
                         8 * (record.result.samples_ns.size() + record.candidate.decisions.size());
    PostgresCommand command = postgres::InsertRecord(record, fence);
    absl::Status refused = CheckRecord(record);
    // Both callbacks run on the writer's thread, one after the other.
    auto shared = std::make_shared<record::Record>(std::move(record));
    writer_.Enqueue(
        std::move(command),
        [shared, fence](PostgresRows& rows) -> absl::Status {
          HONE_ASSIGN_OR_RETURN(shared->id, postgres::InsertedRecord(fence, rows));
          return absl::OkStatus();
        },
        [shared, done = std::move(done)](absl::Status status) mutable {
          if (status.ok()) {
            std::move(done)(std::move(*shared));
          } else {
            std::move(done)(std::move(status));
          }
        },
        bytes, std::move(refused));
  }
  absl::StatusOr<std::vector<record::Record>> Query(const RecordQuery& query) override {
    return readers_.With([&](PostgresConnection& c) { return postgres::QueryRecords(c, query); });
  }

  void PublishBest(int64_t record_id, const JobFence& fence, Done done) override {
    writer_.EnqueueApply(
        [this, record_id, fence](PostgresConnection& c) {
          HONE_RETURN_IF_ERROR(postgres::CheckFence(c, fence));
          return postgres::InsertBest(c, record_id, NowUnixMs());
        },
        std::move(done), kRowBytes);
  }
  void Quarantine(const std::string& workload_digest, const std::string& target,
                  const record::Candidate& candidate, int64_t last_record,
                  const std::string& reason, const JobFence& fence, Done done) override {
    writer_.EnqueueApply(
        [=, this](PostgresConnection& c) {
          HONE_RETURN_IF_ERROR(postgres::CheckFence(c, fence));
          return postgres::QuarantineRecords(c, workload_digest, target, candidate, last_record,
                                             reason, NowUnixMs());
        },
        std::move(done), kRowBytes);
  }
  absl::StatusOr<BestRow> LookupBest(const BestQuery& query) override {
    return readers_.With([&](PostgresConnection& c) { return postgres::SelectBest(c, query); });
  }

  void PutArtifact(const std::string& digest, std::string bytes, Done done) override {
    writer_.Enqueue(postgres::InsertArtifact(digest, bytes, NowUnixMs()), Ignore, std::move(done),
                    kRowBytes + bytes.size(), CheckDigest(digest));
  }
  absl::StatusOr<std::string> GetArtifact(const std::string& digest) override {
    return readers_.With(
        [&](PostgresConnection& c) { return postgres::SelectArtifact(c, digest); });
  }

  absl::StatusOr<int64_t> NextJobNumber() override {
    return readers_.With([](PostgresConnection& c) { return postgres::NextJobNumber(c); });
  }
  void PutJob(JobRow job, Done done) override {
    const size_t bytes = kRowBytes + job.request.size() + job.summary.size();
    PostgresCommand command = postgres::UpsertJob(job);
    absl::Status refused = CheckJob(job);
    auto shared = std::make_shared<const JobRow>(std::move(job));
    writer_.Enqueue(
        std::move(command),
        [shared](PostgresRows& rows) {
          return rows.Next() ? absl::OkStatus() : FencedOffError(shared->id);
        },
        [shared, done = std::move(done)](absl::Status status) mutable {
          std::move(done)(absl::IsAlreadyExists(status) ? SameRequestError(*shared) : status);
        },
        bytes, std::move(refused));
  }
  absl::StatusOr<JobRow> GetJob(const std::string& id) override {
    return readers_.With([&](PostgresConnection& c) { return postgres::SelectJob(c, id); });
  }
  absl::StatusOr<JobRow> GetJobByRequest(const std::string& request_id) override {
    return readers_.With(
        [&](PostgresConnection& c) { return postgres::SelectJobByRequest(c, request_id); });
  }
  absl::StatusOr<std::vector<JobRow>> ListJobs(int page_size,
                                               const std::string& after_id) override {
    return readers_.With(
        [&](PostgresConnection& c) { return postgres::SelectJobs(c, page_size, after_id); });
  }
  bool IsShared() const override { return true; }
  void ClaimJobs(const JobClaim& claim, int limit,
                 absl::AnyInvocable<void(absl::StatusOr<std::vector<JobRow>>) &&> done) override {
    WriteForResult<std::vector<JobRow>>(
        [claim, limit](PostgresConnection& c) { return postgres::ClaimJobs(c, claim, limit); },
        std::move(done), kRowBytes);
  }
  void RenewJobs(
      const JobClaim& claim,
      absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>) &&> done) override {
    WriteForResult<std::vector<std::string>>(
        [claim](PostgresConnection& c) { return postgres::RenewJobs(c, claim); }, std::move(done),
        kRowBytes);
  }
  void ReleaseJob(const std::string& id, int64_t fence, Done done) override {
    writer_.EnqueueApply(
        [id, fence](PostgresConnection& c) { return postgres::ReleaseJob(c, id, fence); },
        std::move(done), kRowBytes);
  }
  void AppendEvent(JobEvent event, Done done) override {
    const size_t bytes = kRowBytes + event.payload.size();
    PostgresCommand command = postgres::InsertEvent(event);
    event.payload.clear();  // the command has it
    writer_.Enqueue(
        std::move(command),
        [event = std::move(event)](PostgresRows& rows) {
          return postgres::CheckEventInserted(event, rows);
        },
        std::move(done), bytes);
  }
  absl::StatusOr<std::vector<JobEvent>> Events(const std::string& job_id) override {
    return readers_.With([&](PostgresConnection& c) { return postgres::SelectEvents(c, job_id); });
  }

  void PutModel(ModelRow model,
                absl::AnyInvocable<void(absl::StatusOr<int64_t>) &&> done) override {
    const size_t bytes = kRowBytes + model.metrics.size() + model.bytes.size();
    WriteForResult<int64_t>([model = std::move(model)](
                                PostgresConnection& c) { return postgres::InsertModel(c, model); },
                            std::move(done), bytes);
  }
  absl::StatusOr<ModelRow> GetModel(const ModelKey& key) override {
    return readers_.With([&](PostgresConnection& c) { return postgres::SelectModel(c, key); });
  }
  absl::StatusOr<ModelRow> GetModelById(int64_t id) override {
    return readers_.With([&](PostgresConnection& c) { return postgres::SelectModelById(c, id); });
  }
  absl::StatusOr<std::vector<ModelRow>> ListModels(const std::string& name,
                                                   const std::string& target) override {
    return readers_.With(
        [&](PostgresConnection& c) { return postgres::SelectModels(c, name, target); });
  }

  void ChangeStanding(StandingChange change, Done done) override {
    const size_t bytes = kRowBytes + change.refused.value_or("").size();
    writer_.EnqueueApply(
        [change = std::move(change)](PostgresConnection& c) -> absl::Status {
          HONE_RETURN_IF_ERROR(CheckChange(change));
          return postgres::MergeStanding(c, change);
        },
        std::move(done), bytes);
  }
  absl::StatusOr<std::vector<WorkerStanding>> Standings() override {
    return readers_.With([](PostgresConnection& c) { return postgres::SelectStandings(c); });
  }

  absl::StatusOr<std::string> Identity() override {
    return readers_.With([](PostgresConnection& c) { return postgres::SelectIdentity(c); });
  }
  void Import(ImportBatch batch,
              absl::AnyInvocable<void(absl::StatusOr<ImportReport>) &&> done) override {
    const size_t bytes = kRowBytes * (1 + batch.records.size());
    WriteForResult<ImportReport>(
        [this, batch = std::move(batch)](PostgresConnection& c) {
          return postgres::ImportRows(c, batch, NowUnixMs());
        },
        std::move(done), bytes);
  }
  absl::StatusOr<BackupReport> Backup(const std::string&, const std::function<bool()>&) override {
    return absl::FailedPreconditionError(
        "the store is a PostgreSQL database, which is not copied as a file: back it up with pg_dump"
        " or the database's own means, or export the records");
  }
  absl::StatusOr<CompactReport> Compact(const CompactOptions& options,
                                        const std::function<bool()>& cancelled) override {
    if (cancelled()) return absl::CancelledError("the compaction was broken off");
    return readers_.With([&](PostgresConnection& c) { return postgres::Compact(c, options); });
  }
  StoreHealth Health() override {
    StoreHealth health{.backend = "postgresql"};
    health.queued_writes = static_cast<int64_t>(writer_.Queued());
    const absl::StatusOr<int64_t> size =
        readers_.With([](PostgresConnection& c) { return postgres::SizeBytes(c); });
    health.size_bytes = size.value_or(0);
    if (!size.ok()) health.damage = std::string(size.status().message());
    return health;
  }
  absl::Status Flush() override { return writer_.Flush(); }

 private:
  int64_t NowUnixMs() const { return absl::ToUnixMillis(clock_.Now()); }

  // A write whose callback gets what it made.
  template <typename Result>
  void WriteForResult(absl::AnyInvocable<absl::StatusOr<Result>(PostgresConnection&)> write,
                      absl::AnyInvocable<void(absl::StatusOr<Result>) &&> done, size_t bytes) {
    auto result = std::make_shared<Result>();
    writer_.EnqueueApply(
        [result, write = std::move(write)](PostgresConnection& c) mutable -> absl::Status {
          HONE_ASSIGN_OR_RETURN(*result, write(c));
          return absl::OkStatus();
        },
        [result, done = std::move(done)](absl::Status status) mutable {
          if (status.ok()) {
            std::move(done)(*std::move(result));
          } else {
            std::move(done)(std::move(status));
          }
        },
        bytes);
  }

  const SystemClock system_clock_;
  const Clock& clock_;
  PostgresReaderPool readers_;
  PostgresWriter writer_;  // last: its callbacks use the others
};

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenPostgresStore(const std::string& place,
                                                         const PostgresStoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(std::unique_ptr<PostgresConnection> connection,
                        PostgresConnection::Open(place));
  HONE_ASSIGN_OR_RETURN(PostgresRows encoding,
                        connection->Query("SELECT current_setting('server_encoding')"));
  encoding.Next();
  if (const std::string found = encoding.Text(); found != "UTF8") {
    return absl::FailedPreconditionError(absl::StrCat(
        "the PostgreSQL ", connection->name(), " keeps texts in ", found,
        ": make the store's database with createdb --encoding=UTF8 --template=template0"));
  }
  HONE_RETURN_IF_ERROR(MigratePostgres(*connection));
  return std::make_unique<PostgresStore>(place, std::move(connection), options);
}

}  // namespace hone::store
