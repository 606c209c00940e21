#ifndef HONE_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_
#define HONE_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/store/postgres/connection.h"
#include "server/store/store.h"
#include "server/store/write_queue.h"

namespace hone::store {

// Opens the store in a PostgreSQL database (15 or newer), which several servers may open. Only the
// one that leads writes (Store::Lead). Creates the tables in an empty database. `place`:
// "postgresql://user@host/database"; the password should be in libpq's password file. Unavailable:
// the database cannot be reached. PermissionDenied: this user has no access. FailedPrecondition:
// see MigratePostgres and CheckLeaderSettings, or the encoding is not UTF-8.
absl::StatusOr<std::unique_ptr<Store>> OpenPostgresStore(const std::string& place);

// The statements of each version of the schema, as SqliteMigrations. PostgreSQL's versions have
// their own numbers.
const std::vector<const char*>& PostgresMigrations();

// Applies the missing migrations to an empty schema of the database or an older store, all in one
// transaction, which stores their numbers in the table hone_schema. Servers that start at the same
// time wait for each other. A server that does not lead leaves an older store as it is.
// FailedPrecondition: the store is from a newer Hone, or the schema contains tables of another
// program.
absl::Status MigratePostgres(PostgresConnection& connection,
                             const std::vector<const char*>& migrations, bool is_leader = true);

// A write: either a statement with a function that reads its result, or a function that runs
// several dependent statements.
struct PostgresWork {
  PostgresCommand command = {};
  // Reads the result. If it returns an error, the statement changed nothing and the write has
  // failed.
  absl::AnyInvocable<absl::Status(PostgresRows&)> on_rows = nullptr;
  // Used instead of the command. May run more than once; only the last run counts.
  absl::AnyInvocable<absl::Status(PostgresConnection&)> apply = nullptr;
};

// The leader's connection for writes, and the commits of its groups of writes. Thread-safe.
//
// The session of this connection holds an advisory lock, which the database releases when the
// session ends, so at most one server leads. A leader begins a new epoch, whose number is in the
// only row of the table leader. Every transaction that writes locks this row and checks the epoch.
// Therefore a server that was deposed cannot commit anything.
//
// The transaction of a group also writes the group's number into that row. If the connection breaks
// during a commit, the committer connects again. Once it has the lock again, the earlier session
// has ended, and the row tells whether the group was committed. So no group is lost or written
// twice. The statements of a group are sent together, so that it costs two round trips.
class PostgresCommitter final : public GroupCommitter<PostgresWork> {
 public:
  explicit PostgresCommitter(std::string place) : place_(std::move(place)) {}

  // Tries to become the leader. Returns false if another server leads. Migrates the tables first.
  // Unavailable: the database cannot be reached. FailedPrecondition: see CheckLeaderSettings and
  // MigratePostgres. REQUIRES: no write is queued.
  absl::StatusOr<bool> Lead();
  // Aborted: this server does not lead; the message says why.
  absl::Status leading() const;
  // The current epoch; 0 before the first one.
  int64_t epoch() const { return epoch_; }
  // Gives up the leadership, because reads cannot reach the database. Does nothing if this server
  // does not lead.
  void GiveUp(const absl::Status& why);

  // If the connection breaks, tries to continue the epoch for a few seconds. After that, this
  // server is deposed, and all writes fail with Aborted until it leads again.
  absl::Status Commit(const std::vector<QueuedWrite<PostgresWork>*>& writes) override;
  bool IsAlone(const PostgresWork& work) const override { return work.apply != nullptr; }
  void HurryUp() override { hurry_ = true; }

 private:
  absl::Status TryGroup(const std::vector<QueuedWrite<PostgresWork>*>& writes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RunWrites(const std::vector<QueuedWrite<PostgresWork>*>& writes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Opens a connection if there is none, and tries to get its session the lock of the leader.
  absl::StatusOr<bool> Lock() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Connects again and continues the epoch. Returns the number of the last group that was
  // committed. Aborted: another server has led since, or the database lost commits.
  absl::StatusOr<int64_t> Continue() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SetLeading(const absl::Status& leading);

  const std::string place_;
  absl::Mutex mutex_;
  std::unique_ptr<PostgresConnection> connection_ ABSL_GUARDED_BY(mutex_);
  int64_t group_ ABSL_GUARDED_BY(mutex_) = 0;      // number of the current or last group
  int64_t committed_ ABSL_GUARDED_BY(mutex_) = 0;  // number of the last group that was committed
  std::atomic<int64_t> epoch_ = 0;
  std::atomic<bool> hurry_ = false;
  mutable absl::Mutex leading_mutex_;
  absl::Status leading_ ABSL_GUARDED_BY(leading_mutex_) =
      absl::AbortedError("this server has not led yet");
};

// FailedPrecondition: the database only accepts reads, or it acknowledges commits before they are
// durable (synchronous_commit = off).
absl::Status CheckLeaderSettings(PostgresConnection& connection);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_
