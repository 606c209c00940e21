#ifndef HONE_SERVER_STORE_SQLITE_CONNECTION_H_
#define HONE_SERVER_STORE_SQLITE_CONNECTION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/connection.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hone::store {

// Returns the status of the last failed call on `database`. `what` describes the attempt. The
// message contains the path and says what to do.
//   ResourceExhausted  the disk or the database is full
//   PermissionDenied   the file, its folder or the disk is read-only, or this user may not open it
//   DataLoss           not a database, or a damaged one (IsDamaged)
//   Unavailable        another program holds the lock for longer than the busy timeout
//   AlreadyExists      a uniqueness constraint
//   FailedPrecondition another constraint
//   InvalidArgument    a text or blob over SQLite's limit
//   Internal           anything else: an I/O error, a wrong statement
absl::Status SqliteError(sqlite3* database, const std::string& path, absl::string_view what);

// A DataLoss that says that the store's file is damaged, and what to do. IsDamaged tells it from
// other data that is lost, such as one record that cannot be decoded.
absl::Status DamagedError(const std::string& path, absl::string_view message);
bool IsDamaged(const absl::Status& status);

// One use of a prepared statement, made by SqliteConnection::Prepare. The thread's ReadLimit ends
// it. Destruction resets the statement, which ends its read transaction; the connection owns and
// keeps the compiled form. Not thread-safe.
class SqliteStatement final : public StatementRun {
 public:
  SqliteStatement(sqlite3_stmt* statement, const std::string* path)
      : statement_(statement), path_(path) {}
  ~SqliteStatement() override;

  void BindInt64(int64_t value) override;
  void BindDouble(double value) override;  // SQLite can store NaN only as NULL
  void BindText(absl::string_view text) override;
  void BindBlob(absl::string_view bytes) override;
  void BindBool(bool value) override { BindInt64(value ? 1 : 0); }
  void BindRaw(absl::string_view text) override { BindText(text); }
  absl::StatusOr<bool> Step() override;
  int64_t Int64() override;
  bool Bool() override { return Int64() != 0; }
  double Double() override;
  std::string Text() override;

 private:
  void Check(int code);

  sqlite3_stmt* const statement_;
  const std::string* const path_;
  int next_parameter_ = 1;
  int next_column_ = 0;
  absl::Status bind_error_;
};

// One connection to a SQLite database with the settings that the store needs. Used by one thread at
// a time, except StopEarly, which any thread may call.
class SqliteConnection final : public Connection {
 public:
  // Opens a database for writing. Creates the file if it does not exist; an existing file is not
  // changed. Errors are those of SqliteError.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> OpenForWriting(const std::string& path);
  // Opens a database for reading that another connection of this process has open for writing.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> OpenForReading(const std::string& path);
  // Opens an empty database in memory.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> OpenInMemory();

  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;
  ~SqliteConnection() override;

  Dialect dialect() const override { return Dialect::kSqlite; }
  const std::string& name() const override { return path_; }

  const std::string& path() const { return path_; }
  // For functions of SQLite that this class does not wrap. The connection owns the handle.
  sqlite3* database() { return database_; }

  // Sets and verifies the settings of a writer: write-ahead logging, synchronous=FULL, foreign
  // keys, checkpoints only by Checkpoint, and, in a new file, incremental freeing of unused pages.
  // FailedPrecondition: the file system does not support write-ahead logging, like a network disk.
  // Other errors are those of SqliteError.
  absl::Status SetUpForWriting();

  // Runs statements without parameters and results.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql) override;
  // Returns the first column of the first row, an integer. NotFound: there is no row.
  absl::StatusOr<int64_t> QueryInt64(absl::string_view sql);

  // Whether a transaction is open. SQLite may roll a transaction back by itself, for example when
  // the disk is full.
  bool InTransaction() const;

  // Copies committed pages from the log to the database file, as far as active readers allow it.
  absl::Status Checkpoint();
  // Number of pages in the log after the last commit of this connection.
  int LogPages() const { return log_pages_; }

  // A number that every change of a row by this connection increases.
  int64_t Changes() const;
  // From now on the log stays as it is when the connection is closed.
  void KeepLog();

  // Size of the database's pages in bytes, including unused pages.
  absl::StatusOr<int64_t> SizeBytes() override;
  absl::StatusOr<int64_t> UsedBytes() override;

  // Makes current and later statements of this connection fail soon. May be called by any thread.
  void StopEarly() { stop_early_ = true; }

 private:
  SqliteConnection(std::string path, sqlite3* database);
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> Open(const std::string& path, int flags);

  const std::string path_;
  sqlite3* const database_;
  int log_pages_ = 0;
  std::atomic<bool> stop_early_ = false;
  absl::flat_hash_map<std::string, sqlite3_stmt*> statements_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_CONNECTION_H_
