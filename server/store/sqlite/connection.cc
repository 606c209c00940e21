#include "server/store/sqlite/connection.h"

#include <sqlite3.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/read_limit.h"

namespace hone::store {
namespace {

constexpr char kDamaged[] = "hone.store/damaged";

absl::Status DiskFull(const std::string& path, const std::string& message) {
  return absl::ResourceExhaustedError(absl::StrCat(message, "; free space on the disk of ", path,
                                                   " and try again: nothing committed is lost"));
}

absl::Status ReadOnly(const std::string& path, const std::string& message) {
  return absl::PermissionDeniedError(
      absl::StrCat(message, "; make ", path, " and its folder writable for this user"));
}

// Returns the errno of the call that failed, or 0 if it is unknown. SQLite reports it for most
// statements, but not for COMMIT, for which it is stored at the file of the log.
int SystemErrno(sqlite3* database, int extended) {
  const int known = sqlite3_system_errno(database);
  if (known != 0 || extended != SQLITE_IOERR_WRITE) return known;
  sqlite3_file* log = nullptr;
  int last = 0;
  if (sqlite3_file_control(database, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log) == SQLITE_OK &&
      log != nullptr && log->pMethods != nullptr) {
    log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &last);
  }
  return last;
}

// SQLite binds NULL for a null pointer, even if the length is 0.
const char* NonNull(absl::string_view bytes) { return bytes.data() == nullptr ? "" : bytes.data(); }

constexpr int kBusyTimeoutMs = 5000;
// Steps of SQLite's virtual machine between two checks of StopEarly and of the ReadLimit. They take
// well under a millisecond.
constexpr int kProgressSteps = 10000;
// A negative number means KiB. 16 MiB suffice, because readers run short statements and the writer
// changes only a few pages at a time.
constexpr char kCacheSize[] = "PRAGMA cache_size = -16384";

}  // namespace

absl::Status DamagedError(const std::string& path, absl::string_view message) {
  absl::Status status = absl::DataLossError(absl::StrCat(
      message, "; stop the server, keep a copy of ", path,
      " and restore a backup (hone-server restore), or save what is readable with: sqlite3 '", path,
      "' .recover | sqlite3 recovered.db; without the file an empty store is made"));
  status.SetPayload(kDamaged, absl::Cord());
  return status;
}

bool IsDamaged(const absl::Status& status) { return status.GetPayload(kDamaged).has_value(); }

absl::Status SqliteError(sqlite3* database, const std::string& path, absl::string_view what) {
  const int extended = sqlite3_extended_errcode(database);
  std::string message = absl::StrCat("store ", path, ": ", what, ": ", sqlite3_errmsg(database));
  switch (extended & 0xff) {
    case SQLITE_FULL:
      return DiskFull(path, message);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return ReadOnly(path, message);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return DamagedError(path, message);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(
          absl::StrCat(message, "; another program is writing to it: close it and try again"));
    case SQLITE_CONSTRAINT:
      if (extended == SQLITE_CONSTRAINT_UNIQUE || extended == SQLITE_CONSTRAINT_PRIMARYKEY ||
          extended == SQLITE_CONSTRAINT_ROWID) {
        return absl::AlreadyExistsError(message);
      }
      return absl::FailedPreconditionError(message);
    case SQLITE_TOOBIG:
      return absl::InvalidArgumentError(message);
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN: {
      const int system_errno = SystemErrno(database, extended);
      if (system_errno != 0) absl::StrAppend(&message, " (", std::strerror(system_errno), ")");
      if (system_errno == ENOSPC || system_errno == EDQUOT || system_errno == EFBIG) {
        return DiskFull(path, message);
      }
      if (system_errno == EACCES || system_errno == EPERM || system_errno == EROFS) {
        return ReadOnly(path, message);
      }
      return absl::InternalError(absl::StrCat(message, "; check the disk of ", path));
    }
    default:
      return absl::InternalError(message);
  }
}

SqliteStatement::~SqliteStatement() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

void SqliteStatement::Check(int code) {
  if (code != SQLITE_OK && bind_error_.ok()) {
    bind_error_ = SqliteError(sqlite3_db_handle(statement_), *path_, "bind a parameter");
  }
}

void SqliteStatement::BindInt64(int64_t value) {
  Check(sqlite3_bind_int64(statement_, next_parameter_++, value));
}

void SqliteStatement::BindDouble(double value) {
  Check(sqlite3_bind_double(statement_, next_parameter_++, value));
}

void SqliteStatement::BindText(absl::string_view text) {
  Check(sqlite3_bind_text64(statement_, next_parameter_++, NonNull(text), text.size(),
                            SQLITE_TRANSIENT, SQLITE_UTF8));
}

void SqliteStatement::BindBlob(absl::string_view bytes) {
  Check(sqlite3_bind_blob64(statement_, next_parameter_++, NonNull(bytes), bytes.size(),
                            SQLITE_TRANSIENT));
}

absl::StatusOr<bool> SqliteStatement::Step() {
  if (!bind_error_.ok()) return bind_error_;
  next_column_ = 0;
  switch (sqlite3_step(statement_)) {
    case SQLITE_ROW:
      return true;
    case SQLITE_DONE:
      return false;
    case SQLITE_INTERRUPT:
      HONE_RETURN_IF_ERROR(ReadLimit::Check());
      [[fallthrough]];
    default:
      return SqliteError(sqlite3_db_handle(statement_), *path_, "run a statement");
  }
}

int64_t SqliteStatement::Int64() { return sqlite3_column_int64(statement_, next_column_++); }

double SqliteStatement::Double() {
  const int column = next_column_++;
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  return sqlite3_column_double(statement_, column);
}

std::string SqliteStatement::Text() {
  const int column = next_column_++;
  const void* const bytes = sqlite3_column_blob(statement_, column);
  const int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

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
      [](void* self) {
        const bool stops =
            static_cast<SqliteConnection*>(self)->stop_early_ || !ReadLimit::Check().ok();
        return stops ? 1 : 0;
      },
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

absl::StatusOr<int64_t> SqliteConnection::UsedBytes() {
  HONE_ASSIGN_OR_RETURN(const int64_t pages, QueryInt64("PRAGMA page_count"));
  HONE_ASSIGN_OR_RETURN(const int64_t unused, QueryInt64("PRAGMA freelist_count"));
  HONE_ASSIGN_OR_RETURN(const int64_t page_bytes, QueryInt64("PRAGMA page_size"));
  return (pages - unused) * page_bytes;
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
