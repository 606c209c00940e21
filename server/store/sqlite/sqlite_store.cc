#include "server/store/sqlite/sqlite_store.h"

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
#include "server/store/database_store.h"
#include "server/store/reader_pool.h"
#include "server/store/sqlite/backup.h"
#include "server/store/sqlite/committer.h"
#include "server/store/sqlite/compaction.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/integrity_check.h"
#include "server/store/sqlite/schema.h"
#include "server/store/sqlite/store_lock.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

class SqliteStore final : public DatabaseStore {
 public:
  SqliteStore(StoreLock lock, std::unique_ptr<SqliteConnection> writing, std::string path,
              int64_t last_job, const SqliteStoreOptions& options)
      : DatabaseStore(options.clock),
        lock_(std::move(lock)),
        path_(path),
        job_number_(last_job),
        committer_(std::move(writing)),
        writer_(path_, &committer_),
        readers_([path = std::move(path)] { return SqliteConnection::OpenForReading(path); },
                 options.max_readers) {}
  // The callbacks of the last writes may still read.
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

  absl::StatusOr<int64_t> NextJobNumber() override { return ++job_number_; }

  absl::StatusOr<BackupReport> Backup(const std::string& path,
                                      const std::function<bool()>& cancelled) override {
    return BackUp(path_, path, cancelled);
  }

  absl::StatusOr<CompactReport> Compact(const CompactOptions& options,
                                        const std::function<bool()>& cancelled) override {
    CompactionAccess access;
    access.read = [this](const CompactionAccess::Work& work) {
      return Read([&](Connection& c) { return work(static_cast<SqliteConnection&>(c)); });
    };
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
    health.size_bytes = Get([](Connection& c) { return c.SizeBytes(); }).value_or(0);
    return health;
  }

  absl::Status Flush() override { return writer_.Flush(); }

 private:
  absl::Status Read(absl::FunctionRef<absl::Status(Connection&)> read) override {
    return readers_.With(read);
  }
  void Write(Apply apply, Done done, size_t bytes) override {
    writer_.Enqueue(std::move(apply), std::move(done), bytes);
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

  // Members are destroyed in reverse order: the readers close before the writer, so that the
  // writer's connection empties the log, and the lock is released after all connections are closed.
  const StoreLock lock_;
  const std::string path_;
  std::atomic<int64_t> job_number_;  // the last number that was returned
  absl::Mutex health_mutex_;
  StoreHealth health_ ABSL_GUARDED_BY(health_mutex_);
  SqliteCommitter committer_;
  WriteQueue<SqliteApply> writer_;
  ReaderPool readers_;
  std::unique_ptr<IntegrityCheck> check_;
};

// Ends all claims on jobs. This process has just become the only opener, so all claimants have
// ended.
absl::Status ReleaseEveryJob(SqliteConnection& connection) {
  return connection.Execute(
      "UPDATE job SET replica = '', lease_until_unix_ms = 0 WHERE lease_until_unix_ms <> 0");
}

// Returns the largest job id that is a number, or 0 if no job has one.
absl::StatusOr<int64_t> LastJobNumber(SqliteConnection& connection) {
  // Ids that are not numbers, from imports and tests, count as 0.
  return connection.QueryInt64("SELECT IFNULL(MAX(CAST(id AS INTEGER)), 0) FROM job");
}

// Makes sure that unused pages of the file can be freed. A file that was created by an older schema
// must be rewritten once for this.
void PrepareForShrinking(SqliteConnection& connection) {
  const absl::StatusOr<int64_t> mode = connection.QueryInt64("PRAGMA auto_vacuum");
  constexpr int kIncremental = 2;
  if (mode.ok() && *mode == kIncremental) return;
  spdlog::info("store {}: it is rewritten once so that it can shrink later", connection.path());
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
