#include "server/store/sqlite_store.h"

#include <atomic>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "server/store/backup.h"
#include "server/store/best_table.h"
#include "server/store/compaction.h"
#include "server/store/import_rows.h"
#include "server/store/integrity_check.h"
#include "server/store/job_table.h"
#include "server/store/model_table.h"
#include "server/store/reader_pool.h"
#include "server/store/record_table.h"
#include "server/store/schema.h"
#include "server/store/sqlite_connection.h"
#include "server/store/standing_table.h"
#include "server/store/store_lock.h"
#include "server/store/text_table.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

constexpr size_t kRowBytes = 512;  // what a queued write holds beside its texts, about

class SqliteStore final : public Store {
 public:
  SqliteStore(StoreLock lock, std::unique_ptr<SqliteConnection> writing, std::string path,
              int64_t last_job, const SqliteStoreOptions& options)
      : lock_(std::move(lock)),
        path_(path),
        job_number_(last_job),
        clock_(options.clock != nullptr ? *options.clock : system_clock_),
        writer_(std::move(writing), options.writer),
        readers_(std::move(path), options.max_readers) {}
  // Callbacks of the last writes may still read.
  ~SqliteStore() override { writer_.Stop(); }

  // Starts the check of the whole database.
  absl::Status StartCheck(const std::string& path) {
    HONE_ASSIGN_OR_RETURN(auto connection, SqliteConnection::OpenForReading(path));
    {
      absl::MutexLock lock(&health_mutex_);
      health_.check = StoreHealth::Check::kUnderWay;
    }
    check_ = std::make_unique<IntegrityCheck>(
        std::move(connection), [this](const absl::Status& status) { OnChecked(status); });
    return absl::OkStatus();
  }

  void PutText(const std::string& digest, const std::string& text, Done done) override {
    const size_t bytes = kRowBytes + text.size();
    writer_.Enqueue(
        [this, digest, text](SqliteConnection& connection) {
          return InsertText(connection, digest, text, NowUnixMs());
        },
        std::move(done), bytes);
  }

  absl::StatusOr<std::string> GetText(const std::string& digest) override {
    return readers_.With([&](SqliteConnection& c) { return SelectText(c, digest); });
  }

  void Append(record::Record record, const JobFence& fence,
              absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) override {
    const size_t bytes = kRowBytes + record.result.detail.size() +
                         8 * (record.result.samples_ns.size() + record.candidate.decisions.size());
    // The second callback runs once the first has for the last time.
    auto shared = std::make_shared<record::Record>(std::move(record));
    writer_.Enqueue(
        [shared, fence](SqliteConnection& connection) {
          HONE_RETURN_IF_ERROR(CheckFence(connection, fence));
          return InsertRecord(connection, *shared);
        },
        [shared, done = std::move(done)](absl::Status status) mutable {
          if (status.ok()) {
            std::move(done)(std::move(*shared));
          } else {
            std::move(done)(std::move(status));
          }
        },
        bytes);
  }

  absl::StatusOr<std::vector<record::Record>> Query(const RecordQuery& query) override {
    return readers_.With([&](SqliteConnection& c) { return QueryRecords(c, query); });
  }

  void PublishBest(int64_t record_id, const JobFence& fence, Done done) override {
    writer_.Enqueue(
        [this, record_id, fence](SqliteConnection& connection) {
          HONE_RETURN_IF_ERROR(CheckFence(connection, fence));
          return InsertBest(connection, record_id, NowUnixMs());
        },
        std::move(done), kRowBytes);
  }

  void Quarantine(const std::string& workload_digest, const std::string& target,
                  const record::Candidate& candidate, int64_t last_record,
                  const std::string& reason, const JobFence& fence, Done done) override {
    writer_.Enqueue(
        [=, this](SqliteConnection& connection) {
          HONE_RETURN_IF_ERROR(CheckFence(connection, fence));
          return QuarantineRecords(connection, workload_digest, target, candidate, last_record,
                                   reason, NowUnixMs());
        },
        std::move(done), kRowBytes);
  }

  absl::StatusOr<BestRow> LookupBest(const BestQuery& query) override {
    return readers_.With([&](SqliteConnection& c) { return SelectBest(c, query); });
  }

  void PutArtifact(const std::string& digest, std::string bytes, Done done) override {
    const size_t size = kRowBytes + bytes.size();
    writer_.Enqueue(
        [this, digest, bytes = std::move(bytes)](SqliteConnection& connection) {
          return InsertArtifact(connection, digest, bytes, NowUnixMs());
        },
        std::move(done), size);
  }

  absl::StatusOr<std::string> GetArtifact(const std::string& digest) override {
    return readers_.With([&](SqliteConnection& c) { return SelectArtifact(c, digest); });
  }

  absl::StatusOr<int64_t> NextJobNumber() override { return ++job_number_; }

  void PutJob(JobRow job, Done done) override {
    const size_t bytes = kRowBytes + job.request.size() + job.summary.size();
    writer_.Enqueue(
        [job = std::move(job)](SqliteConnection& connection) { return UpsertJob(connection, job); },
        std::move(done), bytes);
  }

  absl::StatusOr<JobRow> GetJob(const std::string& id) override {
    return readers_.With([&](SqliteConnection& c) { return SelectJob(c, id); });
  }

  absl::StatusOr<JobRow> GetJobByRequest(const std::string& request_id) override {
    return readers_.With([&](SqliteConnection& c) { return SelectJobByRequest(c, request_id); });
  }

  absl::StatusOr<std::vector<JobRow>> ListJobs(int page_size,
                                               const std::string& after_id) override {
    return readers_.With([&](SqliteConnection& c) { return SelectJobs(c, page_size, after_id); });
  }

  void ClaimJobs(const JobClaim& claim, int limit,
                 absl::AnyInvocable<void(absl::StatusOr<std::vector<JobRow>>) &&> done) override {
    WriteForResult<std::vector<JobRow>>(
        [claim, limit](SqliteConnection& c) { return ClaimJobRows(c, claim, limit); },
        std::move(done), kRowBytes);
  }

  void RenewJobs(
      const JobClaim& claim,
      absl::AnyInvocable<void(absl::StatusOr<std::vector<std::string>>) &&> done) override {
    WriteForResult<std::vector<std::string>>(
        [claim](SqliteConnection& c) { return RenewJobRows(c, claim); }, std::move(done),
        kRowBytes);
  }

  void ReleaseJob(const std::string& id, int64_t fence, Done done) override {
    writer_.Enqueue([id, fence](SqliteConnection& c) { return ReleaseJobRow(c, id, fence); },
                    std::move(done), kRowBytes);
  }

  void AppendEvent(JobEvent event, Done done) override {
    const size_t bytes = kRowBytes + event.payload.size();
    writer_.Enqueue([event = std::move(event)](
                        SqliteConnection& connection) { return InsertEvent(connection, event); },
                    std::move(done), bytes);
  }

  absl::StatusOr<std::vector<JobEvent>> Events(const std::string& job_id) override {
    return readers_.With([&](SqliteConnection& c) { return SelectEvents(c, job_id); });
  }

  void PutModel(ModelRow model,
                absl::AnyInvocable<void(absl::StatusOr<int64_t>) &&> done) override {
    const size_t bytes = kRowBytes + model.metrics.size() + model.bytes.size();
    WriteForResult<int64_t>(
        [model = std::move(model)](SqliteConnection& c) { return InsertModel(c, model); },
        std::move(done), bytes);
  }

  absl::StatusOr<ModelRow> GetModel(const ModelKey& key) override {
    return readers_.With([&](SqliteConnection& c) { return SelectModel(c, key); });
  }

  absl::StatusOr<ModelRow> GetModelById(int64_t id) override {
    return readers_.With([&](SqliteConnection& c) { return SelectModelById(c, id); });
  }

  absl::StatusOr<std::vector<ModelRow>> ListModels(const std::string& name,
                                                   const std::string& target) override {
    return readers_.With([&](SqliteConnection& c) { return SelectModels(c, name, target); });
  }

  void ChangeStanding(StandingChange change, Done done) override {
    const size_t bytes = kRowBytes + change.refused.value_or("").size();
    writer_.Enqueue(
        [change = std::move(change)](SqliteConnection& c) { return MergeStanding(c, change); },
        std::move(done), bytes);
  }

  absl::StatusOr<std::vector<WorkerStanding>> Standings() override {
    return readers_.With([](SqliteConnection& c) { return SelectStandings(c); });
  }

  absl::StatusOr<std::string> Identity() override {
    return readers_.With([](SqliteConnection& c) { return SelectIdentity(c); });
  }

  void Import(ImportBatch batch,
              absl::AnyInvocable<void(absl::StatusOr<ImportReport>) &&> done) override {
    const size_t bytes = kRowBytes * (1 + batch.records.size());
    WriteForResult<ImportReport>(
        [this, batch = std::move(batch)](SqliteConnection& c) {
          return ImportRows(c, batch, NowUnixMs());
        },
        std::move(done), bytes);
  }

  absl::StatusOr<BackupReport> Backup(const std::string& path,
                                      const std::function<bool()>& cancelled) override {
    return BackUp(path_, path, cancelled);
  }

  absl::StatusOr<CompactReport> Compact(const CompactOptions& options,
                                        const std::function<bool()>& cancelled) override {
    CompactionAccess access;
    access.read = [this](const CompactionAccess::Work& work) { return readers_.With(work); };
    access.write = [this](const CompactionAccess::Work& work) {
      absl::Notification done;
      absl::Status result;
      writer_.Enqueue([&work](SqliteConnection& c) { return work(c); },
                      [&](absl::Status status) {
                        result = std::move(status);
                        done.Notify();
                      },
                      kRowBytes);
      done.WaitForNotification();
      return result;
    };
    access.cancelled = cancelled;
    return CompactStore(access, options);
  }

  StoreHealth Health() override {
    StoreHealth health;
    {
      absl::MutexLock lock(&health_mutex_);
      health = health_;
    }
    health.backend = "sqlite";
    health.queued_writes = static_cast<int64_t>(writer_.Queued());
    const absl::StatusOr<int64_t> size =
        readers_.With([](SqliteConnection& c) { return c.SizeBytes(); });
    health.size_bytes = size.value_or(0);
    return health;
  }

  absl::Status Flush() override { return writer_.Flush(); }

 private:
  int64_t NowUnixMs() const { return absl::ToUnixMillis(clock_.Now()); }

  // A write whose callback gets what it made.
  template <typename Result>
  void WriteForResult(absl::AnyInvocable<absl::StatusOr<Result>(SqliteConnection&)> write,
                      absl::AnyInvocable<void(absl::StatusOr<Result>) &&> done, size_t bytes) {
    // The second callback runs once the first has for the last time.
    auto result = std::make_shared<Result>();
    writer_.Enqueue(
        [result, write = std::move(write)](SqliteConnection& connection) mutable -> absl::Status {
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
        bytes);
  }

  void OnChecked(const absl::Status& status) {
    absl::MutexLock lock(&health_mutex_);
    if (status.ok()) {
      health_.check = StoreHealth::Check::kSound;
    } else if (absl::IsDataLoss(status)) {
      spdlog::error("{}", std::string(status.message()));
      health_.check = StoreHealth::Check::kDamaged;
      health_.damage = std::string(status.message());
      writer_.Refuse(status);
    } else {
      health_.check = StoreHealth::Check::kNotChecked;
    }
  }

  // Destroyed from the last to the first: readers close before the writer, so that the writer's
  // connection is the one that empties the log, and the lock goes when every connection has.
  const StoreLock lock_;
  const std::string path_;
  std::atomic<int64_t> job_number_;  // the last one given
  absl::Mutex health_mutex_;
  StoreHealth health_ ABSL_GUARDED_BY(health_mutex_);
  const SystemClock system_clock_;
  const Clock& clock_;
  Writer writer_;
  ReaderPool readers_;
  std::unique_ptr<IntegrityCheck> check_;
};

// Only the writer's file can be cut, and only when it was made so: a store of an older schema is
// rewritten once.
void PrepareForShrinking(SqliteConnection& connection) {
  const absl::StatusOr<int64_t> mode = connection.QueryInt64("PRAGMA auto_vacuum");
  constexpr int kIncremental = 2;
  if (mode.ok() && *mode == kIncremental) return;
  spdlog::info("store {}: is rewritten once, so that it can shrink from now on", connection.path());
  if (const absl::Status status = connection.Execute("VACUUM"); !status.ok()) {
    spdlog::warn("store {}: cannot shrink for now: {}", connection.path(),
                 std::string(status.message()));
  }
}

}  // namespace

absl::StatusOr<std::string> CanonicalStorePath(const std::string& path) {
  if (path.empty() || path == ":memory:") {
    return absl::InvalidArgumentError("a store needs the path of a file");
  }
  std::error_code error;
  const std::filesystem::path given = std::filesystem::absolute(path, error);
  if (std::filesystem::is_directory(given, error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("store ", path, " is a folder; name a file in it, as ", path, "/hone.db"));
  }
  HONE_RETURN_IF_ERROR(MakeDirectories(given.parent_path().string()));
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(given, error);
  if (error) return ErrnoStatus(error.value(), absl::StrCat("store ", path));
  return canonical.string();
}

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                       const SqliteStoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string canonical, CanonicalStorePath(path));
  HONE_ASSIGN_OR_RETURN(StoreLock lock, StoreLock::Acquire(canonical));
  HONE_ASSIGN_OR_RETURN(auto writing, SqliteConnection::OpenForWriting(canonical));
  HONE_RETURN_IF_ERROR(CheckVersion(*writing, Migrations()));
  HONE_RETURN_IF_ERROR(writing->SetUpForWriting());
  HONE_RETURN_IF_ERROR(Migrate(*writing, Migrations()));
  HONE_RETURN_IF_ERROR(CheckSchema(*writing, Migrations()));
  PrepareForShrinking(*writing);
  HONE_RETURN_IF_ERROR(ReleaseEveryJob(*writing));
  HONE_ASSIGN_OR_RETURN(const int64_t last_job, LastJobNumber(*writing));
  auto store = std::make_unique<SqliteStore>(std::move(lock), std::move(writing), canonical,
                                             last_job, options);
  if (options.check_integrity) HONE_RETURN_IF_ERROR(store->StartCheck(canonical));
  return store;
}

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path) {
  return OpenSqliteStore(path, SqliteStoreOptions());
}

}  // namespace hone::store
