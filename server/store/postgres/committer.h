#ifndef HONE_SERVER_STORE_POSTGRES_COMMITTER_H_
#define HONE_SERVER_STORE_POSTGRES_COMMITTER_H_

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/store/postgres/connection.h"
#include "server/store/write_queue.h"

namespace hone::store {

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

// Commits groups of writes. The statements of a group are sent together, so that a group costs two
// round trips. Every transaction holds one lock of the database. Therefore server replicas write
// one after the other, checks remain valid until the commit, and ids grow in the order of commits.
// After a connection breaks, a new one is opened, and the database is asked whether the interrupted
// commit took place, so that no write is done twice.
class PostgresCommitter final : public GroupCommitter<PostgresWork> {
 public:
  PostgresCommitter(std::string place, std::unique_ptr<PostgresConnection> connection)
      : place_(std::move(place)), connection_(std::move(connection)) {}

  // Repeats the attempt for up to 30 seconds until the database answers.
  absl::Status Commit(const std::vector<QueuedWrite<PostgresWork>*>& writes) override;
  bool IsAlone(const PostgresWork& work) const override { return work.apply != nullptr; }
  void HurryUp() override { hurry_ = true; }

 private:
  absl::Status TryGroup(const std::vector<QueuedWrite<PostgresWork>*>& writes);
  absl::Status RunWrites(const std::vector<QueuedWrite<PostgresWork>*>& writes);
  // Finds out whether the commit of pending_transaction_, during which the connection broke, took
  // place. OK: it did. Aborted: it did not. Unavailable: the database does not know yet.
  absl::Status AskAboutCommit();
  absl::Status Connect();

  const std::string place_;
  std::unique_ptr<PostgresConnection> connection_;
  std::string pending_transaction_;  // the transaction with an unknown result; "" if there is none
  std::atomic<bool> hurry_ = false;
};

// The lock that every transaction of a writer and every migration holds.
inline constexpr char kTakeWriteLock[] = "SELECT pg_advisory_xact_lock(1213156933)";

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_COMMITTER_H_
