#ifndef HONE_SERVER_STORE_CONNECTION_H_
#define HONE_SERVER_STORE_CONNECTION_H_

#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The interface of a database for the code of the tables. SQLite and PostgreSQL get the same SQL,
// except where the code checks the dialect.
namespace hone::store {

// Runs one statement in a database. See Statement for the meaning of the functions.
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

// One use of a prepared statement, until its destruction. Parameters are bound and columns are read
// in order, so that this code can be written next to its SQL. Not thread-safe.
class Statement {
 public:
  explicit Statement(std::unique_ptr<StatementRun> run) : run_(std::move(run)) {}

  // Binds the next parameter. Step returns the error if this fails.
  Statement& Bind(int64_t value) { return run_->BindInt64(value), *this; }
  // SQLite stores NaN as NULL.
  Statement& Bind(double value) { return run_->BindDouble(value), *this; }
  Statement& Bind(absl::string_view text) { return run_->BindText(text), *this; }
  Statement& BindBlob(absl::string_view bytes) { return run_->BindBlob(bytes), *this; }
  Statement& BindBool(bool value) { return run_->BindBool(value), *this; }
  // Binds text that may contain any bytes, such as the output of a crashed child process.
  Statement& BindRaw(absl::string_view text) { return run_->BindRaw(text), *this; }

  // Returns true if there is another row, whose columns can then be read, and false at the end.
  absl::StatusOr<bool> Step() { return run_->Step(); }
  // Runs a statement without rows.
  absl::Status Run() { return Step().status(); }

  // Reads the next column of the row. REQUIRES: Step returned true.
  int64_t Int64() { return run_->Int64(); }
  bool Bool() { return run_->Bool(); }
  double Double() { return run_->Double(); }  // NULL is read as NaN
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
  // The name of the database in messages.
  virtual const std::string& name() const = 0;
  // Returns a use of the statement, which is compiled once per connection and SQL text. Parameters
  // are ? or ?1, ?2, … REQUIRES: the previous use of the same text has ended.
  virtual absl::StatusOr<Statement> Prepare(absl::string_view sql) = 0;
  // Returns the size of the database on disk.
  virtual absl::StatusOr<int64_t> SizeBytes() = 0;
  // Returns the size of what is stored, without unused space; on PostgreSQL an estimate. Removing
  // rows reduces it at once.
  virtual absl::StatusOr<int64_t> UsedBytes() = 0;
  // Whether the connection is broken, so that a new one is needed.
  virtual bool IsLost() const { return false; }

  // Returns a use of the statement with these parameters.
  template <typename First, typename... Params>
  absl::StatusOr<Statement> Prepare(absl::string_view sql, const First& first,
                                    const Params&... params) {
    absl::StatusOr<Statement> statement = Prepare(sql);
    if (!statement.ok()) return statement;
    statement->Bind(first);
    (statement->Bind(params), ...);
    return statement;
  }
  // Runs a statement without rows, with these parameters.
  template <typename... Params>
  absl::Status Run(absl::string_view sql, const Params&... params) {
    return Has(sql, params...).status();
  }
  // Returns whether a statement with these parameters has a row.
  template <typename... Params>
  absl::StatusOr<bool> Has(absl::string_view sql, const Params&... params) {
    absl::StatusOr<Statement> statement = Prepare(sql, params...);
    if (!statement.ok()) return statement.status();
    return statement->Step();
  }

  // Returns read(row) for each row of the statement.
  template <typename Read>
  static auto ReadAll(absl::StatusOr<Statement> statement, Read read)
      -> absl::StatusOr<std::vector<decltype(read(*statement))>> {
    std::vector<decltype(read(*statement))> rows;
    const absl::Status status =
        ForEachRow(std::move(statement), [&](Statement& row) { rows.push_back(read(row)); });
    if (!status.ok()) return status;
    return rows;
  }
  // Calls read(row) for each row of the statement. `read` may return a Status or nothing.
  template <typename Read>
  static absl::Status ForEachRow(absl::StatusOr<Statement> statement, Read read) {
    if (!statement.ok()) return statement.status();
    while (true) {
      absl::StatusOr<bool> row = statement->Step();
      if (!row.ok() || !*row) return row.status();
      if constexpr (std::is_void_v<decltype(read(*statement))>) {
        read(*statement);
      } else if (absl::Status status = read(*statement); !status.ok()) {
        return status;
      }
    }
  }
};

// Returns the prefix of a column in a condition that must not use an index. SQLite has no
// statistics here, and this leaves it only one index to choose. PostgreSQL chooses by its
// statistics.
inline absl::string_view NoIndex(Dialect dialect) { return dialect == Dialect::kSqlite ? "+" : ""; }

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_CONNECTION_H_
