#ifndef HONE_SERVER_STORE_POSTGRES_CONNECTION_H_
#define HONE_SERVER_STORE_POSTGRES_CONNECTION_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/store/connection.h"

struct pg_result;
struct pg_conn;

namespace hone::store {

// The parameters $1, $2, … of a statement in order. PostgreSQL's binary format represents every
// double and every byte exactly.
class PostgresParams {
 public:
  PostgresParams& Bind(int64_t value);
  PostgresParams& Bind(double value);
  // Adds text in UTF-8. status() returns an error if it contains a NUL byte, which PostgreSQL's
  // texts cannot contain.
  PostgresParams& Bind(absl::string_view text);
  PostgresParams& BindBlob(absl::string_view bytes);
  PostgresParams& BindBool(bool value);
  // Adds text that may contain any bytes, for a column of type bytea.
  PostgresParams& BindRaw(absl::string_view text) { return BindBlob(text); }

  // InvalidArgument: a parameter cannot be represented; the message says which.
  const absl::Status& status() const { return status_; }
  int count() const { return static_cast<int>(bytes_.size()); }
  const std::vector<unsigned>& types() const { return types_; }
  // The arguments for libpq, which point into this object.
  std::vector<const char*> values() const;
  std::vector<int> lengths() const;
  std::vector<int> formats() const { return std::vector<int>(bytes_.size(), 1); }

 private:
  PostgresParams& Add(unsigned type, std::string bytes);

  std::vector<unsigned> types_;
  std::vector<std::string> bytes_;
  absl::Status status_;
};

// Reads the rows of a result in binary format in order, and the columns of each row in order.
class PostgresRows {
 public:
  // Takes ownership of the result.
  explicit PostgresRows(pg_result* result);
  PostgresRows(PostgresRows&&) noexcept = default;
  PostgresRows& operator=(PostgresRows&&) noexcept = default;

  // Moves to the next row. Returns false after the last row.
  bool Next();
  int64_t changed() const;  // rows that the statement inserted, updated or deleted

  // REQUIRES: Next returned true, and the column is of that type.
  int64_t Int64();
  double Double();
  bool Bool();
  std::string Text();

 private:
  struct Free {
    void operator()(pg_result* result) const;
  };
  std::unique_ptr<pg_result, Free> result_;
  int row_ = -1;
  int column_ = 0;
};

// A statement with its parameters.
struct PostgresCommand {
  std::string sql;
  PostgresParams params;
};

// One connection to a PostgreSQL database. Used by one thread at a time. Errors of its calls:
//   Unavailable: the server cannot be reached, is starting or stopping, or only accepts reads since
//   another one became the primary; or the connection broke.
//   ResourceExhausted: the disk or the memory of the server is full, or it has too many
//   connections. PermissionDenied: this user lacks a privilege, or the password is wrong.
//   AlreadyExists: a uniqueness constraint. FailedPrecondition: another constraint.
//   InvalidArgument: a value is not valid for its type, such as text that is not UTF-8.
//   DataLoss: the server found damaged data. Internal: anything else.
// Messages contain the host and the database, but never the password.
class PostgresConnection final : public Connection {
 public:
  // `place`: a connection URI, "postgresql://user@host/database". Missing parts are taken from
  // libpq's environment variables and password file.
  static absl::StatusOr<std::unique_ptr<PostgresConnection>> Open(const std::string& place);
  PostgresConnection(const PostgresConnection&) = delete;
  PostgresConnection& operator=(const PostgresConnection&) = delete;
  ~PostgresConnection() override;

  Dialect dialect() const override { return Dialect::kPostgres; }

  // "database hone on db.internal", for messages.
  const std::string& name() const override { return name_; }
  bool IsLost() const override;
  bool InTransaction() const;

  // Runs statements without parameters and results.
  absl::Status Execute(const std::string& sql);
  // The statement is sent to the server in its first Step.
  absl::StatusOr<Statement> Prepare(absl::string_view sql) override;
  absl::StatusOr<int64_t> SizeBytes() override;
  absl::StatusOr<int64_t> UsedBytes() override;
  // Runs one statement, compiled once per connection. Parameters are ?, ?1 or $1. The thread's
  // ReadLimit cancels it in the database.
  absl::StatusOr<PostgresRows> Query(const std::string& sql, const PostgresParams& params = {});
  // Sends all statements before it waits for the first result. Returns a result per command;
  // statements after a failed one are not run. REQUIRES: a transaction is open, and the results are
  // small.
  absl::StatusOr<std::vector<PostgresRows>> Pipeline(const std::vector<PostgresCommand*>& commands);

 private:
  explicit PostgresConnection(pg_conn* connection);
  // Returns the name of the compiled statement on the server.
  absl::StatusOr<std::string> Compile(const std::string& sql, const PostgresParams& params);
  // Waits until the result of the query that was sent can be read. Returns the error of the
  // ReadLimit if that has cancelled the query, whose result is then an error.
  absl::Status AwaitResult();
  // Returns the error of a result, or of the connection if there is no result.
  absl::Status ErrorOf(pg_result* result, absl::string_view what) const;

  pg_conn* const connection_;
  bool is_given_up_ = false;  // a query was not cancelled in time
  std::string name_;
  absl::flat_hash_map<std::string, std::string> statements_;  // SQL → its name on the server
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_CONNECTION_H_
