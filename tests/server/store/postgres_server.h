#ifndef HONE_TESTS_SERVER_STORE_POSTGRES_SERVER_H_
#define HONE_TESTS_SERVER_STORE_POSTGRES_SERVER_H_

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace hone::store {

// A real PostgreSQL server of this test's own, on a Unix socket in a temporary folder, that ends
// with the process. Root's test runs it as another user: PostgreSQL refuses root.
class PostgresServer {
 public:
  // The process's server, started by the first call. NotFound: PostgreSQL is not installed; else
  // what went wrong.
  static absl::StatusOr<PostgresServer*> Get();
  ~PostgresServer();

  // The URI of the database that belongs to a test's folder, made by the first call.
  absl::StatusOr<std::string> DatabaseOf(const std::string& place);
  // Runs a statement as the administrator in the database "postgres".
  absl::Status Administer(const std::string& sql);

 private:
  PostgresServer() = default;
  absl::Status Start();
  std::string Uri(const std::string& database) const;

  std::string folder_;
  pid_t pid_ = -1;
  std::set<std::string> databases_;
};

// Where initdb and postgres are; "" they are not installed.
std::string PostgresPrograms();

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_POSTGRES_SERVER_H_
