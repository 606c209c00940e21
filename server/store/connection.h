#ifndef HONE_SERVER_STORE_CONNECTION_H_
#define HONE_SERVER_STORE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// What the code of the tables sees of a database. The SQL is the same on SQLite and PostgreSQL but
// for the few places that ask for the dialect.
namespace hone::store {

// How a database runs one statement. Statement says what the functions mean.
class StatementRun {
 public:
  virtual ~StatementRun() = default;
  virtual void BindInt64(int64_t value) = 0;
  virtual void BindDouble(double value) = 0;
  virtual void BindText(absl::string_view text) = 0;
  virtual void BindBlob(absl::string_view bytes) = 0;
  virtual void BindBool(bool value) = 0;
  virtual void BindRaw(absl::string_view text) = 0;
  virtual absl::StatusOr<bool> Step() = 0;
  virtual int64_t Int64() = 0;
  virtual bool Bool() = 0;
  virtual double Double() = 0;
  virtual std::string Text() = 0;
};

// One use of a prepared statement. Parameters are bound and columns are read in their order, so
// that code stands beside the SQL it belongs to. Destruction ends the use. Not thread-safe.
class Statement {
 public:
  explicit Statement(std::unique_ptr<StatementRun> run) : run_(std::move(run)) {}

  // Bind the next parameter. An error is kept and returned by Step.
  Statement& Bind(int64_t value) { return run_->BindInt64(value), *this; }
  // On SQLite a value that is not a number is kept as NULL.
  Statement& Bind(double value) { return run_->BindDouble(value), *this; }
  Statement& Bind(absl::string_view text) { return run_->BindText(text), *this; }
  Statement& BindBlob(absl::string_view bytes) { return run_->BindBlob(bytes), *this; }
  Statement& BindBool(bool value) { return run_->BindBool(value), *this; }
  // Text that may hold any bytes, as what a crashed child wrote.
  Statement& BindRaw(absl::string_view text) { return run_->BindRaw(text), *this; }

  // True: there is a row, whose columns are read next. False: the statement is done.
  absl::StatusOr<bool> Step() { return run_->Step(); }
  // Step for a statement without rows.
  absl::Status Run() { return Step().status(); }

  // Read the next column of the row. REQUIRES: Step returned true.
  int64_t Int64() { return run_->Int64(); }
  bool Bool() { return run_->Bool(); }
  double Double() { return run_->Double(); }  // NULL is not a number
  std::string Text() { return run_->Text(); }
  std::string Blob() { return run_->Text(); }
  std::string Raw() { return run_->Text(); }

 private:
  std::unique_ptr<StatementRun> run_;
};

enum class Dialect { kSqlite, kPostgres };

// One connection to a database. Used by one thread at a time.
class Connection {
 public:
  virtual ~Connection() = default;
  virtual Dialect dialect() const = 0;
  // What messages call the database.
  virtual const std::string& name() const = 0;
  // Compiled once per connection and SQL text; parameters are ? or ?1, ?2, … REQUIRES: the use of
  // the same text before has ended.
  virtual absl::StatusOr<Statement> Prepare(absl::string_view sql) = 0;
  // Bytes of the database on disk.
  virtual absl::StatusOr<int64_t> SizeBytes() = 0;
  // Whether the connection broke: a new one is needed.
  virtual bool IsLost() const { return false; }

  // Calls read() for each row of the statement. `read` may return a Status or nothing.
  template <typename Read>
  static absl::Status ForEachRow(Statement& statement, Read read) {
    while (true) {
      absl::StatusOr<bool> row = statement.Step();
      if (!row.ok() || !*row) return row.status();
      if constexpr (std::is_void_v<decltype(read())>) {
        read();
      } else if (absl::Status status = read(); !status.ok()) {
        return status;
      }
    }
  }
};

// A column in a condition that is to use no index: SQLite has no statistics here, and takes the one
// index that is left. PostgreSQL chooses by its own.
inline absl::string_view NoIndex(Dialect dialect) { return dialect == Dialect::kSqlite ? "+" : ""; }

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_CONNECTION_H_
