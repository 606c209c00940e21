#include "server/store/sqlite_store.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "server/store/best_table.h"
#include "server/store/integrity_check.h"
#include "server/store/job_table.h"
#include "server/store/model_table.h"
#include "server/store/reader_pool.h"
#include "server/store/record_table.h"
#include "server/store/schema.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store_lock.h"
#include "server/store/text_table.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

constexpr size_t kRowBytes = 512;  // what a queued write holds beside its texts, about

class SqliteStore final : public Store {
 public:
  SqliteStore(StoreLock lock, std::unique_ptr<SqliteConnection> writing, std::string path,
              const SqliteStoreOptions& options)
      : lock_(std::move(lock)),
        clock_(options.clock != nullptr ? *options.clock : system_clock_),
        writer_(std::move(writing), options.writer),
        readers_(std::move(path), options.max_readers) {}
  // Callbacks of the last writes may still read.
  ~SqliteStore() override { writer_.Stop(); }

  // Starts the check of the whole database.
  absl::Status StartCheck(const std::string& path) {
    HONE_ASSIGN_OR_RETURN(auto connection, SqliteConnection::OpenForReading(path));
    check_ = std::make_unique<IntegrityCheck>(std::move(connection), [this](absl::Status damage) {
      spdlog::error("{}", std::string(damage.message()));
      writer_.Refuse(std::move(damage));
    });
    return absl::OkStatus();
  }

  void PutText(const std::string& digest, const std::string& text, Done done) override {
    const size_t bytes = kRowBytes + text.size();
    writer_.Enqueue(
        [digest, text](SqliteConnection& connection) {
          return InsertText(connection, digest, text);
        },
        std::move(done), bytes);
  }

  absl::StatusOr<std::string> GetText(const std::string& digest) override {
    return readers_.With([&](SqliteConnection& c) { return SelectText(c, digest); });
  }

  void Append(record::Record record,
              absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) override {
    const size_t bytes = kRowBytes + record.result.detail.size() +
                         8 * (record.result.samples_ns.size() + record.candidate.decisions.size());
    // Both callbacks run on the writer's thread, one after the other.
    auto shared = std::make_shared<record::Record>(std::move(record));
    writer_.Enqueue(
        [shared](SqliteConnection& connection) { return InsertRecord(connection, *shared); },
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

  void PublishBest(int64_t record_id, Done done) override {
    writer_.Enqueue(
        [this, record_id](SqliteConnection& connection) {
          return InsertBest(connection, record_id, absl::ToUnixMillis(clock_.Now()));
        },
        std::move(done), kRowBytes);
  }

  void Quarantine(const std::string& workload_digest, const std::string& target,
                  const record::Candidate& candidate, int64_t last_record, Done done) override {
    writer_.Enqueue(
        [this, workload_digest, target, candidate, last_record](SqliteConnection& connection) {
          return QuarantineRecords(connection, workload_digest, target, candidate, last_record,
                                   absl::ToUnixMillis(clock_.Now()));
        },
        std::move(done), kRowBytes);
  }

  absl::StatusOr<BestRow> LookupBest(const BestQuery& query) override {
    return readers_.With([&](SqliteConnection& c) { return SelectBest(c, query); });
  }

  void PutArtifact(const std::string& digest, std::string bytes, Done done) override {
    const size_t size = kRowBytes + bytes.size();
    writer_.Enqueue(
        [digest, bytes = std::move(bytes)](SqliteConnection& connection) {
          return InsertArtifact(connection, digest, bytes);
        },
        std::move(done), size);
  }

  absl::StatusOr<std::string> GetArtifact(const std::string& digest) override {
    return readers_.With([&](SqliteConnection& c) { return SelectArtifact(c, digest); });
  }

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
    // Both callbacks run on the writer's thread, one after the other.
    auto id = std::make_shared<int64_t>(0);
    writer_.Enqueue(
        [id, model = std::move(model)](SqliteConnection& connection) -> absl::Status {
          HONE_ASSIGN_OR_RETURN(*id, InsertModel(connection, model));
          return absl::OkStatus();
        },
        [id, done = std::move(done)](absl::Status status) mutable {
          if (status.ok()) {
            std::move(done)(*id);
          } else {
            std::move(done)(std::move(status));
          }
        },
        bytes);
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

  absl::Status Flush() override { return writer_.Flush(); }

 private:
  // Destroyed from the last to the first: readers close before the writer, so that the writer's
  // connection is the one that empties the log, and the lock goes when every connection has.
  const StoreLock lock_;
  const SystemClock system_clock_;
  const Clock& clock_;
  Writer writer_;
  ReaderPool readers_;
  std::unique_ptr<IntegrityCheck> check_;
};

// The path without symbolic links, so that every name of a store has the same lock file; makes its
// folder.
absl::StatusOr<std::string> CanonicalPath(const std::string& path) {
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

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                       const SqliteStoreOptions& options) {
  HONE_ASSIGN_OR_RETURN(const std::string canonical, CanonicalPath(path));
  HONE_ASSIGN_OR_RETURN(StoreLock lock, StoreLock::Acquire(canonical));
  HONE_ASSIGN_OR_RETURN(auto writing, SqliteConnection::OpenForWriting(canonical));
  HONE_RETURN_IF_ERROR(CheckVersion(*writing, Migrations()));
  HONE_RETURN_IF_ERROR(writing->SetUpForWriting());
  HONE_RETURN_IF_ERROR(Migrate(*writing, Migrations()));
  HONE_RETURN_IF_ERROR(CheckSchema(*writing, Migrations()));
  auto store =
      std::make_unique<SqliteStore>(std::move(lock), std::move(writing), canonical, options);
  if (options.check_integrity) HONE_RETURN_IF_ERROR(store->StartCheck(canonical));
  return store;
}

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path) {
  return OpenSqliteStore(path, SqliteStoreOptions());
}

}  // namespace hone::store
