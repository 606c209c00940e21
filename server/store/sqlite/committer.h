#ifndef HONE_SERVER_STORE_SQLITE_COMMITTER_H_
#define HONE_SERVER_STORE_SQLITE_COMMITTER_H_

#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/store/sqlite/connection.h"
#include "server/store/write_queue.h"

namespace hone::store {

// Runs inside a transaction, possibly more than once; only the last run counts.
using SqliteApply = absl::AnyInvocable<absl::Status(SqliteConnection&)>;

// Commits groups of writes on the only connection that writes. If a write fails, only this write is
// undone. Between groups, copies the log into the database file.
class SqliteCommitter final : public GroupCommitter<SqliteApply> {
 public:
  // `checkpoint_pages`: the log is copied when it has this many pages.
  explicit SqliteCommitter(std::unique_ptr<SqliteConnection> connection,
                           int checkpoint_pages = 4000)
      : connection_(std::move(connection)), checkpoint_pages_(checkpoint_pages) {}

  absl::Status Commit(const std::vector<QueuedWrite<SqliteApply>*>& writes) override;
  void AfterGroup() override;

 private:
  // Savepoints take time, and nearly all writes succeed. Therefore savepoints are used only to
  // repeat a group in which a write has failed.
  absl::Status TryGroup(const std::vector<QueuedWrite<SqliteApply>*>& writes, bool savepoints);
  absl::Status ApplyOne(QueuedWrite<SqliteApply>& write);
  // Rolls the transaction back if it is still open, and returns `why`.
  absl::Status UndoAll(const absl::Status& why);

  const std::unique_ptr<SqliteConnection> connection_;
  const int checkpoint_pages_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_COMMITTER_H_
