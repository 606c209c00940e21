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
#include "server/store/sqlite/statement.h"

struct sqlite3;

namespace hone::store {

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
