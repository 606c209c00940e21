#include "server/store/sqlite/sqlite_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/thread_priority.h"
#include "server/store/reader_pool.h"
#include "server/store/sqlite/backup.h"
#include "server/store/sqlite/connection.h"
#include "server/store/tables.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

class SqliteStore final : public Store {
 public:
  SqliteStore(StoreLock lock, std::unique_ptr<SqliteConnection> writing, std::string path,
              int64_t last_job, const SqliteStoreOptions& options)
      : Store(options.clock),
        lock_(std::move(lock)),
        path_(path),
        job_number_(last_job),
        committer_(std::move(writing), &soundness_),
        writer_(path_, &committer_),
        readers_([path = std::move(path)] { return SqliteConnection::OpenForReading(path); }) {}
  // The callbacks of the last writes may still read.
  ~SqliteStore() override { writer_.Stop(); }

  absl::Status StartCheck(const std::string& path, int64_t large_bytes) {
    HONE_ASSIGN_OR_RETURN(auto connection, SqliteConnection::OpenForReading(path));
    const bool is_large = connection->SizeBytes().value_or(0) > large_bytes;
    soundness_.CheckBegins(/*is_awaited=*/!is_large);
    check_ = std::make_unique<IntegrityCheck>(
        std::move(connection), is_large,
        [this](const absl::Status& status) { soundness_.CheckEnds(status); });
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> NextJobNumber() override { return ++job_number_; }

  absl::StatusOr<BackupReport> Backup(const std::string& path,
                                      const std::function<bool()>& cancelled) override {
    return BackUp(path_, path, cancelled);
  }

  StoreHealth Health() override {
    StoreHealth health{.check = soundness_.check(),
                       .queued_writes = static_cast<int64_t>(writer_.Queued())};
    health.size_bytes = Get([](Connection& c) { return c.SizeBytes(); }).value_or(0);
    return health;
  }

  absl::Status CheckWritable() override { return soundness_.status(); }
  absl::Status CheckSpace() override { return writer_.CheckSpace(); }
  bool IsBeingChecked() override { return soundness_.check() == StoreHealth::Check::kUnderWay; }
  absl::Status Flush() override { return writer_.Flush(); }

 private:
  absl::Status Read(absl::FunctionRef<absl::Status(Connection&)> read) override {
    absl::Status status = readers_.With(read);
    soundness_.Note(status);
    return status;
  }
  void Write(Apply apply, Done done, size_t bytes, WhenFull when_full) override {
    writer_.Enqueue(std::move(apply), std::move(done), bytes, when_full);
  }
  // Moves pages from the end of the file into unused pages, and truncates the file.
  absl::Status FreeSpace(const std::function<bool()>& cancelled) override {
    constexpr int kPagesAtOnce = 2000;
    HONE_RETURN_IF_ERROR(soundness_.AwaitCheck());
    int64_t unused = -1;
    while (true) {
      if (cancelled()) return absl::CancelledError("the compaction was cancelled");
      int64_t left = 0;
      HONE_RETURN_IF_ERROR(WriteNow([&](Connection& c) -> absl::Status {
        auto& connection = static_cast<SqliteConnection&>(c);
        HONE_RETURN_IF_ERROR(
            connection.Execute(absl::StrCat("PRAGMA incremental_vacuum(", kPagesAtOnce, ")")));
        HONE_ASSIGN_OR_RETURN(left, connection.QueryInt64("PRAGMA freelist_count"));
        return absl::OkStatus();
      }));
      if (left == 0 || left == unused) return absl::OkStatus();
      unused = left;
    }
  }

  // Members are destroyed in reverse order: the readers close before the writer, so that the
  // writer's connection empties the log, and the lock is released after all connections are closed.
  const StoreLock lock_;
  const std::string path_;
  std::atomic<int64_t> job_number_;  // the last number that was returned
  Soundness soundness_;
  SqliteCommitter committer_;
  WriteQueue<SqliteApply> writer_;
  ReaderPool readers_;
  std::unique_ptr<IntegrityCheck> check_;
};

// Refuses a file that SQLite would replace by an empty database: it removes a log without a
// database, for example after the file was cut to nothing.
absl::Status CheckForLostFile(const std::string& path) {
  std::error_code error;
  const uintmax_t log = std::filesystem::file_size(path + "-wal", error);
  if (error || log == 0) return absl::OkStatus();
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > 0) return absl::OkStatus();
  return DamagedError(path, absl::StrCat("store ", path, error ? " is missing" : " is empty",
                                         ", but its log ", path,
                                         "-wal has data; move the log away "
                                         "to begin with an empty store"));
}

// Brings the file up to date. Returns the number of the last job.
absl::StatusOr<int64_t> SetUp(SqliteConnection& writing) {
  HONE_RETURN_IF_ERROR(CheckVersion(writing, SqliteMigrations()));
  HONE_RETURN_IF_ERROR(BackUpBeforeMigration(writing, SqliteMigrations()));
  HONE_RETURN_IF_ERROR(writing.SetUpForWriting());
  HONE_RETURN_IF_ERROR(Migrate(writing, SqliteMigrations()));
  HONE_RETURN_IF_ERROR(CheckSchema(writing, SqliteMigrations()));
  HONE_RETURN_IF_ERROR(SelectUnfinishedJobs(writing).status());  // the server continues them
  return writing.QueryInt64(kLastJobSql);
}

// No caller waits for the check of a large store, which takes minutes.
constexpr int kNice = 19;
constexpr absl::Duration kSlice = absl::Milliseconds(5);   // of CheckRows
constexpr absl::Duration kBreak = absl::Milliseconds(20);  // after each slice
constexpr absl::Duration kAwaitLimit = absl::Seconds(5);
constexpr absl::Duration kPoll = absl::Milliseconds(1);

absl::StatusOr<std::vector<std::string>> ReadTexts(SqliteConnection& connection,
                                                   absl::string_view sql) {
  return Connection::ReadAll(connection.Prepare(sql), [](Statement& row) { return row.Text(); });
}

// The columns by which the rows of a table are stored.
absl::StatusOr<std::vector<std::string>> KeyColumns(SqliteConnection& connection,
                                                    const std::string& table) {
  HONE_ASSIGN_OR_RETURN(const int64_t without_row_id,
                        connection.QueryInt64(absl::StrCat(
                            "SELECT wr FROM pragma_table_list WHERE name = '", table, "'")));
  if (without_row_id == 0) return std::vector<std::string>{"rowid"};
  return ReadTexts(connection, absl::StrCat("SELECT name FROM pragma_table_info('", table,
                                            "') WHERE pk > 0 ORDER BY pk"));
}

// Reads the rows of a table for the time of a slice, in the order of `columns` and after the values
// `last` of these columns, and moves `last` to the last of these rows. `last` is empty at the
// beginning of the table. Returns whether the table ends there.
absl::StatusOr<bool> ReadSlice(SqliteConnection& connection, const std::string& table,
                               const std::vector<std::string>& columns,
                               std::vector<std::string>& last) {
  const std::string key = absl::StrJoin(columns, ", ");
  const std::string after =
      last.empty()
          ? ""
          : absl::StrCat(" WHERE (", key, ") > (",
                         absl::StrJoin(std::vector<std::string>(columns.size(), "?"), ", "), ")");
  HONE_ASSIGN_OR_RETURN(Statement rows,
                        connection.Prepare(absl::StrCat("SELECT ", key, ", * FROM \"", table, "\"",
                                                        after, " ORDER BY ", key)));
  for (const std::string& value : last) rows.Bind(value);
  last.resize(columns.size());
  const absl::Time end = SteadyNow() + kSlice;
  do {
    HONE_ASSIGN_OR_RETURN(const bool row, rows.Step());
    if (!row) return true;
    for (std::string& value : last) value = rows.Text();
  } while (SteadyNow() < end);
  return false;
}

}  // namespace

SqliteCommitter::~SqliteCommitter() {
  if (!soundness_.status().ok()) connection_->KeepLog();
}

absl::Status SqliteCommitter::Commit(const std::vector<QueuedWrite<SqliteApply>*>& writes) {
  HONE_RETURN_IF_ERROR(soundness_.status());
  for (QueuedWrite<SqliteApply>* const write : writes) write->result = absl::OkStatus();
  absl::Status status = TryGroup(writes, /*savepoints=*/false);
  const bool failed = std::any_of(writes.begin(), writes.end(),
                                  [](const auto* write) { return !write->result.ok(); });
  if (failed && !IsDamaged(status)) status = TryGroup(writes, /*savepoints=*/true);
  soundness_.Note(status);
  return status;
}

absl::Status SqliteCommitter::TryGroup(const std::vector<QueuedWrite<SqliteApply>*>& writes,
                                       bool savepoints) {
  HONE_RETURN_IF_ERROR(connection_->Execute("BEGIN IMMEDIATE"));
  const int64_t changes = connection_->Changes();
  absl::Status status;
  for (QueuedWrite<SqliteApply>* const write : writes) {
    write->result = savepoints ? ApplyOne(*write) : write->work(*connection_);
    // After some errors, SQLite rolls the whole transaction back by itself, including the earlier
    // writes of the group.
    if (!connection_->InTransaction()) {
      return write->result.ok() ? absl::InternalError("the transaction ended too early")
                                : write->result;
    }
    // Without space, no later write may be committed before this one.
    if ((!savepoints && !write->result.ok()) || IsDamaged(write->result) ||
        absl::IsResourceExhausted(write->result)) {
      return UndoAll(write->result);
    }
  }
  // A server that only answers look-ups changes nothing, and its start need not wait.
  if (connection_->Changes() != changes) status = soundness_.AwaitCheck();
  if (status.ok()) status = connection_->Execute("COMMIT");
  return status.ok() ? status : UndoAll(status);
}

absl::Status SqliteCommitter::UndoAll(const absl::Status& why) {
  if (!connection_->InTransaction()) return why;
  if (const absl::Status undone = connection_->Execute("ROLLBACK"); !undone.ok()) {
    spdlog::error("store: {}", std::string(undone.message()));
  }
  return why;
}

absl::Status SqliteCommitter::ApplyOne(QueuedWrite<SqliteApply>& write) {
  HONE_RETURN_IF_ERROR(connection_->Run("SAVEPOINT one"));
  absl::Status status = write.work(*connection_);
  if (!connection_->InTransaction()) return status;
  if (!status.ok()) HONE_RETURN_IF_ERROR(connection_->Run("ROLLBACK TO one"));
  HONE_RETURN_IF_ERROR(connection_->Run("RELEASE one"));
  return status;
}

void SqliteCommitter::AfterGroup() {
  if (connection_->LogPages() < checkpoint_pages_ || !soundness_.status().ok()) return;
  // A failure loses nothing, because the log contains every page. The checkpoint is repeated after
  // the next group.
  if (const absl::Status status = connection_->Checkpoint(); !status.ok()) {
    soundness_.Note(status);
    spdlog::warn("store: the log could not be copied, which is tried again: {}",
                 std::string(status.message()));
  }
}

absl::StatusOr<StoreLock> StoreLock::Acquire(const std::string& store_path) {
  const std::string path = absl::StrCat(store_path, ".lock");
  // Close-on-exec: a child process that outlives the server must not hold its store.
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) {
    const absl::Status status =
        ErrnoStatus(errno, absl::StrCat("store ", store_path, ": open its lock file ", path));
    if (!absl::IsPermissionDenied(status)) return status;
    return absl::PermissionDeniedError(
        absl::StrCat(status.message(), "; make the store and its folder writable for this user"));
  }
  StoreLock lock(fd);
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return ErrnoStatus(errno, absl::StrCat("lock ", path));
    char owner[32] = {};
    const ssize_t size = pread(fd, owner, sizeof owner - 1, 0);
    const absl::string_view pid =
        absl::StripAsciiWhitespace(absl::string_view(owner, size > 0 ? size : 0));
    return absl::UnavailableError(absl::StrCat("store ", store_path, " is open in process ",
                                               pid.empty() ? "(unknown)" : pid,
                                               ": the server process is its only opener. Ask that "
                                               "server instead, stop it, or name another "
                                               "store"));
  }
  // The process id is used only in the message above, so errors such as a full disk are ignored.
  const std::string pid = absl::StrCat(getpid(), "\n");
  if (ftruncate(fd, 0) == 0 && pwrite(fd, pid.data(), pid.size(), 0) < 0) errno = 0;
  return lock;
}

StoreLock::StoreLock(StoreLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

StoreLock::~StoreLock() {
  if (fd_ >= 0) close(fd_);
}

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
  HONE_RETURN_IF_ERROR(CheckForLostFile(canonical));
  HONE_ASSIGN_OR_RETURN(auto writing, SqliteConnection::OpenForWriting(canonical));
  const absl::StatusOr<int64_t> last_job = SetUp(*writing);
  if (IsDamaged(last_job.status())) writing->KeepLog();
  HONE_RETURN_IF_ERROR(last_job.status());
  auto store = std::make_unique<SqliteStore>(std::move(lock), std::move(writing), canonical,
                                             *last_job, options);
  if (options.check_integrity)
    HONE_RETURN_IF_ERROR(store->StartCheck(canonical, options.large_bytes));
  return store;
}

absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path) {
  return OpenSqliteStore(path, SqliteStoreOptions());
}

absl::Status Soundness::status() {
  absl::MutexLock lock(&mutex_);
  return damage_;
}

StoreHealth::Check Soundness::check() {
  absl::MutexLock lock(&mutex_);
  return damage_.ok() ? check_ : StoreHealth::Check::kDamaged;
}

void Soundness::Note(const absl::Status& result) {
  if (result.ok() || !IsDamaged(result)) return;
  absl::MutexLock lock(&mutex_);
  SetDamage(result);
}

void Soundness::CheckBegins(bool is_awaited) {
  absl::MutexLock lock(&mutex_);
  is_awaited_ = is_awaited;
  check_ = StoreHealth::Check::kUnderWay;
}

void Soundness::CheckEnds(const absl::Status& result) {
  absl::MutexLock lock(&mutex_);
  check_ = result.ok() ? StoreHealth::Check::kSound : StoreHealth::Check::kNotChecked;
  if (IsDamaged(result)) SetDamage(result);
}

void Soundness::SetDamage(const absl::Status& damage) {
  if (!damage_.ok()) return;
  damage_ = damage;
  spdlog::error("from now on the store is only read, and no job can start: {}",
                std::string(damage.message()));
}

absl::Status Soundness::AwaitCheck() {
  // A timed wait for the mutex would follow the wall clock.
  const absl::Time deadline = SteadyNow() + kAwaitLimit;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      const bool under_way = check_ == StoreHealth::Check::kUnderWay && damage_.ok();
      if (!under_way || !is_awaited_ || SteadyNow() > deadline) return damage_;
    }
    absl::SleepFor(kPoll);
  }
}

void Soundness::StopWaiting() {
  absl::MutexLock lock(&mutex_);
  is_awaited_ = false;
}

absl::Status QuickCheck(SqliteConnection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement check, connection.Prepare("PRAGMA quick_check(1)"));
  HONE_ASSIGN_OR_RETURN(const bool row, check.Step());
  const std::string answer = absl::StrReplaceAll(row ? check.Text() : "no answer", {{"\n", " "}});
  if (answer == "ok") return absl::OkStatus();
  return DamagedError(connection.path(),
                      absl::StrCat("store ", connection.path(), " is damaged: ", answer));
}

absl::Status CheckRows(SqliteConnection& connection) {
  HONE_ASSIGN_OR_RETURN(
      const std::vector<std::string> tables,
      ReadTexts(connection, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name"));
  for (const std::string& table : tables) {
    HONE_ASSIGN_OR_RETURN(const std::vector<std::string> columns, KeyColumns(connection, table));
    std::vector<std::string> last;
    while (true) {
      HONE_ASSIGN_OR_RETURN(const bool at_end, ReadSlice(connection, table, columns, last));
      if (at_end) break;
      absl::SleepFor(kBreak);
    }
  }
  return absl::OkStatus();
}

IntegrityCheck::IntegrityCheck(std::unique_ptr<SqliteConnection> connection, bool is_large,
                               absl::AnyInvocable<void(const absl::Status&)> on_end)
    : connection_(std::move(connection)),
      thread_([this, is_large, on_end = std::move(on_end)]() mutable {
        if (is_large) LowerThreadPriority(kNice);
        on_end(is_large ? CheckRows(*connection_) : QuickCheck(*connection_));
      }) {}

IntegrityCheck::~IntegrityCheck() {
  connection_->StopEarly();
  thread_.join();
}

}  // namespace hone::store
