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
// a time; StopEarly alone may be called from another.
class SqliteConnection final : public Connection {
 public:
  // For writing; makes the file if there is none and changes nothing in one that is there.
  // PermissionDenied, ResourceExhausted, DataLoss, Unavailable, Internal: as SqliteError says.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> OpenForWriting(const std::string& path);
  // For reading a database that another connection of this process has open for writing.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> OpenForReading(const std::string& path);
  // An empty database in memory.
  static absl::StatusOr<std::unique_ptr<SqliteConnection>> OpenInMemory();

  SqliteConnection(const SqliteConnection&) = delete;
  SqliteConnection& operator=(const SqliteConnection&) = delete;
  ~SqliteConnection() override;

  Dialect dialect() const override { return Dialect::kSqlite; }
  const std::string& name() const override { return path_; }

  const std::string& path() const { return path_; }
  // For SQLite's functions that have no form here; the connection keeps it.
  sqlite3* database() { return database_; }

  // Sets and verifies what a writer needs: write-ahead logging, synchronous=FULL, foreign keys, and
  // no checkpoint but by Checkpoint, and in a new file that unused pages can be given back.
  // FailedPrecondition: the file system cannot do write-ahead
  // logging (a network disk). Else as SqliteError says.
  absl::Status SetUpForWriting();

  // Runs statements without parameters and results.
  absl::Status Execute(const std::string& sql);
  absl::StatusOr<Statement> Prepare(absl::string_view sql) override;
  // The first column of the first row, an integer. NotFound: no row.
  absl::StatusOr<int64_t> QueryInt64(absl::string_view sql);

  // False also after SQLite has rolled a transaction back by itself, as it does when the disk is
  // full.
  bool InTransaction() const;

  // Copies committed pages from the log to the database file as far as readers allow it.
  absl::Status Checkpoint();
  // Pages in the log after the last commit of this connection.
  int LogPages() const { return log_pages_; }

  // Bytes of the database's pages, used or not.
  absl::StatusOr<int64_t> SizeBytes() override;

  // Makes what runs on this connection, now or later, fail soon. Any thread.
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
