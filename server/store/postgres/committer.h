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

// A write: a statement and what its rows mean, or several statements that depend on each other.
struct PostgresWork {
  PostgresCommand command = {};
  // Not OK: the statement changed nothing, and the write has failed.
  absl::AnyInvocable<absl::Status(PostgresRows&)> on_rows = nullptr;
  // Instead of the command. May run again: the last run counts.
  absl::AnyInvocable<absl::Status(PostgresConnection&)> apply = nullptr;
};

// Commits groups of writes. The statements of a group travel together, so that a group costs two
// round trips. Every transaction holds one lock of the database: the writes of server replicas come
// one after another, as those of one writer, so that checks hold and ids grow in the order of
// commits. A connection that broke is made anew. Whether the commit that it broke in took place is
// asked of the database, so that a write is done once.
class PostgresCommitter final : public GroupCommitter<PostgresWork> {
 public:
  PostgresCommitter(std::string place, std::unique_ptr<PostgresConnection> connection)
      : place_(std::move(place)), connection_(std::move(connection)) {}

  // Tries until the database answers, for 30 seconds.
  absl::Status Commit(const std::vector<QueuedWrite<PostgresWork>*>& writes) override;
  bool IsAlone(const PostgresWork& work) const override { return work.apply != nullptr; }
  void HurryUp() override { hurry_ = true; }

 private:
  absl::Status TryGroup(const std::vector<QueuedWrite<PostgresWork>*>& writes);
  absl::Status RunWrites(const std::vector<QueuedWrite<PostgresWork>*>& writes);
  // The connection broke in the commit of pending_transaction_. OK: it took place. Aborted: it did
  // not. Unavailable: the database does not know yet.
  absl::Status AskAboutCommit();
  absl::Status Connect();

  const std::string place_;
  std::unique_ptr<PostgresConnection> connection_;
  std::string pending_transaction_;  // whose commit is not known; "" if there is none
  std::atomic<bool> hurry_ = false;
};

// The lock that every transaction of a writer and every migration holds.
inline constexpr char kTakeWriteLock[] = "SELECT pg_advisory_xact_lock(1213156933)";

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_COMMITTER_H_
