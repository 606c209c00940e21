#include "server/store/sqlite/connection.h"

#include <sqlite3.h>

#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/sqlite/status.h"

namespace hone::store {
namespace {

constexpr int kBusyTimeoutMs = 5000;
// Steps of SQLite's virtual machine between two checks of StopEarly. They take well under a
// millisecond.
constexpr int kProgressSteps = 10000;
// A negative number means KiB. 16 MiB suffice, because readers run short statements and the writer
// changes only a few pages at a time.
constexpr char kCacheSize[] = "PRAGMA cache_size = -16384";

}  // namespace

SqliteConnection::SqliteConnection(std::string path, sqlite3* database)
    : path_(std::move(path)), database_(database) {}

SqliteConnection::~SqliteConnection() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(database_);
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::Open(const std::string& path,
                                                                         int flags) {
  sqlite3* database = nullptr;
  // NOMUTEX: only one thread at a time uses a connection, so SQLite need not lock it.
  const int code = sqlite3_open_v2(path.c_str(), &database,
                                   flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  if (database == nullptr) return absl::ResourceExhaustedError("out of memory for a connection");
  auto connection = absl::WrapUnique(new SqliteConnection(path, database));
  if (code != SQLITE_OK) return SqliteError(database, path, "open");
  sqlite3_busy_timeout(database, kBusyTimeoutMs);
  // StopEarly does not use sqlite3_interrupt, which would not stop a statement that starts just
  // after the call.
  sqlite3_progress_handler(
      database, kProgressSteps,
      [](void* self) { return static_cast<SqliteConnection*>(self)->stop_early_ ? 1 : 0; },
      connection.get());
  return connection;
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::OpenForWriting(
    const std::string& path) {
  HONE_ASSIGN_OR_RETURN(auto connection, Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE));
  // If SQLite cannot open a file for writing, it opens it for reading only and returns no error.
  if (sqlite3_db_readonly(connection->database_, "main") == 1) {
    return absl::PermissionDeniedError(absl::StrCat(
        "store ", path, " is read-only; make it and its folder writable for this user"));
  }
  return connection;
}

absl::Status SqliteConnection::SetUpForWriting() {
  // In another file it would write a page, even if the setting is the same.
  HONE_ASSIGN_OR_RETURN(const int64_t pages, QueryInt64("PRAGMA page_count"));
  if (pages == 0) HONE_RETURN_IF_ERROR(Execute("PRAGMA auto_vacuum = INCREMENTAL"));
  {
    HONE_ASSIGN_OR_RETURN(Statement mode, Prepare("PRAGMA journal_mode = WAL"));
    HONE_ASSIGN_OR_RETURN(const bool row, mode.Step());
    const std::string answer = row ? mode.Text() : "nothing";
    if (answer != "wal") {
      return absl::FailedPreconditionError(absl::StrCat(
          "store ", path_, ": the file system cannot do write-ahead logging (journal mode is ",
          answer, "); put the store on a local disk"));
    }
  }
  HONE_RETURN_IF_ERROR(
      Execute("PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
              "PRAGMA wal_autocheckpoint = 0;"
              "PRAGMA journal_size_limit = 67108864;"));
  HONE_RETURN_IF_ERROR(Execute(kCacheSize));
  HONE_ASSIGN_OR_RETURN(const int64_t foreign_keys, QueryInt64("PRAGMA foreign_keys"));
  if (foreign_keys != 1) return absl::InternalError("this SQLite was built without foreign keys");
  sqlite3_wal_hook(
      database_,
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<SqliteConnection*>(self)->log_pages_ = pages;
        return SQLITE_OK;
      },
      this);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::OpenForReading(
    const std::string& path) {
  HONE_ASSIGN_OR_RETURN(auto connection, Open(path, SQLITE_OPEN_READONLY));
  HONE_RETURN_IF_ERROR(connection->Execute("PRAGMA query_only = ON"));
  HONE_RETURN_IF_ERROR(connection->Execute(kCacheSize));
  return connection;
}

absl::StatusOr<std::unique_ptr<SqliteConnection>> SqliteConnection::OpenInMemory() {
  return Open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
}

absl::Status SqliteConnection::Execute(const std::string& sql) {
  if (sqlite3_exec(database_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return SqliteError(database_, path_,
                       absl::StrCat("run ", absl::string_view(sql).substr(0, 60)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Statement> SqliteConnection::Prepare(absl::string_view sql) {
  sqlite3_stmt*& statement = statements_[sql];
  if (statement == nullptr &&
      sqlite3_prepare_v3(database_, sql.data(), static_cast<int>(sql.size()),
                         SQLITE_PREPARE_PERSISTENT, &statement, nullptr) != SQLITE_OK) {
    return SqliteError(database_, path_, absl::StrCat("prepare ", sql));
  }
  return Statement(std::make_unique<SqliteStatement>(statement, &path_));
}

absl::StatusOr<int64_t> SqliteConnection::QueryInt64(absl::string_view sql) {
  HONE_ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  HONE_ASSIGN_OR_RETURN(const bool row, statement.Step());
  if (!row) return absl::NotFoundError(absl::StrCat("no row: ", sql));
  return statement.Int64();
}

bool SqliteConnection::InTransaction() const { return sqlite3_get_autocommit(database_) == 0; }

int64_t SqliteConnection::Changes() const { return sqlite3_total_changes64(database_); }

void SqliteConnection::KeepLog() {
  sqlite3_db_config(database_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

absl::StatusOr<int64_t> SqliteConnection::SizeBytes() {
  HONE_ASSIGN_OR_RETURN(const int64_t pages, QueryInt64("PRAGMA page_count"));
  HONE_ASSIGN_OR_RETURN(const int64_t page_bytes, QueryInt64("PRAGMA page_size"));
  return pages * page_bytes;
}

absl::Status SqliteConnection::Checkpoint() {
  int left = 0;
  int copied = 0;
  if (sqlite3_wal_checkpoint_v2(database_, nullptr, SQLITE_CHECKPOINT_PASSIVE, &left, &copied) !=
      SQLITE_OK) {
    return SqliteError(database_, path_, "checkpoint");
  }
  if (left == copied) log_pages_ = 0;
  return absl::OkStatus();
}

}  // namespace hone::store
