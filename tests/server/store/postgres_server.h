#ifndef HONE_TESTS_SERVER_STORE_POSTGRES_SERVER_H_
#define HONE_TESTS_SERVER_STORE_POSTGRES_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tests/temporary_folder.h"

namespace hone::store {

// A real PostgreSQL server on a Unix socket in a temporary folder. If the test runs as root, the
// server runs as another user, because PostgreSQL refuses root. Used by one thread.
class PostgresServer {
 public:
  // The server of this test process, started by the first call. It ends with the process. NotFound:
  // PostgreSQL is not installed. Other errors: the server did not start.
  static absl::StatusOr<PostgresServer*> Get();
  // Another server, which the caller may break. Its data are on a disk of their own with this size,
  // if the process may mount one. Errors are those of Get.
  static absl::StatusOr<std::unique_ptr<PostgresServer>> Make(int64_t disk_bytes);
  ~PostgresServer();

  // The URI of the database for a test's folder, created by the first call.
  absl::StatusOr<std::string> DatabaseOf(const std::string& place);
  // Runs a statement as the administrator in the database "postgres".
  absl::Status Administer(const std::string& sql);
  // The command line of psql in a database, to which a statement is added.
  std::vector<std::string> Psql(const std::string& database) const;
  // Has PostgreSQL's own program read every table and index of a database. DataLoss: they are
  // damaged. NotFound: the program is not installed.
  absl::Status Check(const std::string& database) const;

  std::string socket() const { return folder_ / ".s.PGSQL.5432"; }
  std::string Log() const;

  // Faults. A server that has ended is started again by Launch, which does not wait.
  bool Running();
  void Launch();
  // Kills all of its processes.
  void Kill();
  // Starts the server again as one that only accepts reads, as after a failover to another one, and
  // back. One that was killed meanwhile is the same after Launch.
  void Demote();
  void Promote();
  // Fills the disk until FreeDisk. FailedPrecondition: the data have no disk of their own; the
  // message says why.
  absl::Status FillDisk();
  void FreeDisk();

 private:
  PostgresServer() = default;
  absl::Status Start();
  // Mounts a file system of this size for the data.
  absl::Status MountDisk(int64_t bytes);
  // Ends the server in order and starts it again.
  void Restart();
  bool Answers() const;
  std::string Uri(const std::string& database) const;
  std::string disk() const { return folder_ / "disk"; }
  std::string data() const { return disk() + "/data"; }

  const TemporaryFolder folder_;
  absl::Status mounted_ = absl::FailedPreconditionError("no size was given");
  pid_t pid_ = -1;
  std::set<std::string> databases_;
};

// The folder of initdb and postgres, or "" if they are not installed.
std::string PostgresPrograms();

}  // namespace hone::store

#endif  // HONE_TESTS_SERVER_STORE_POSTGRES_SERVER_H_
