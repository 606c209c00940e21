#ifndef HONE_SERVER_STORE_POSTGRES_CONNECTION_H_
#define HONE_SERVER_STORE_POSTGRES_CONNECTION_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/connection.h"
#include "server/store/postgres/statement.h"

struct pg_conn;
struct pg_result;

namespace hone::store {

// A statement with its parameters.
struct PostgresCommand {
  std::string sql;
  PostgresParams params;
};

// One connection to a PostgreSQL database. Used by one thread at a time. Errors of its calls:
//   Unavailable: the server cannot be reached, is starting or stopping, or the connection broke.
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
  // Runs one statement, compiled once per connection. Parameters are ?, ?1 or $1.
  absl::StatusOr<PostgresRows> Query(const std::string& sql, const PostgresParams& params = {});
  // Sends all statements before it waits for the first result. Returns a result per command;
  // statements after a failed one are not run. REQUIRES: a transaction is open, and the results are
  // small.
  absl::StatusOr<std::vector<PostgresRows>> Pipeline(const std::vector<PostgresCommand*>& commands);

 private:
  explicit PostgresConnection(pg_conn* connection);
  // Returns the name of the compiled statement on the server.
  absl::StatusOr<std::string> Compile(const std::string& sql, const PostgresParams& params);
  // Returns the error of a result, or of the connection if there is no result.
  absl::Status ErrorOf(pg_result* result, absl::string_view what) const;

  pg_conn* const connection_;
  std::string name_;
  absl::flat_hash_map<std::string, std::string> statements_;  // SQL → its name on the server
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_CONNECTION_H_
