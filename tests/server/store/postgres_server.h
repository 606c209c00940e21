#ifndef HONE_TESTS_SERVER_STORE_POSTGRES_SERVER_H_
#define HONE_TESTS_SERVER_STORE_POSTGRES_SERVER_H_

#include <sys/types.h>

#include <memory>
#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/temporary_folder.h"

namespace hone::store {

// A real PostgreSQL server for this test process, on a Unix socket in a temporary folder. It ends
// with the process. If the test runs as root, the server runs as another user, because PostgreSQL
// refuses root.
class PostgresServer {
 public:
  // The server of the process, started by the first call. NotFound: PostgreSQL is not installed.
  // Other errors: the server did not start.
  static absl::StatusOr<PostgresServer*> Get();
  ~PostgresServer();

  // The URI of the database for a test's folder, created by the first call.
  absl::StatusOr<std::string> DatabaseOf(const std::string& place);
  // Runs a statement as the administrator in the database "postgres".
  absl::Status Administer(const std::string& sql);

 private:
  PostgresServer() = default;
  absl::Status Start();
  std::string Uri(const std::string& database) const;

  const TemporaryFolder folder_;
  pid_t pid_ = -1;
  std::set<std::string> databases_;
};

// The folder of initdb and postgres, or "" if they are not installed.
std::string PostgresPrograms();

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_POSTGRES_SERVER_H_
