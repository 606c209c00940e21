#ifndef HONE_SERVER_STORE_SQLITE_COMMITTER_H_
#define HONE_SERVER_STORE_SQLITE_COMMITTER_H_

#include <memory>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "server/store/sqlite/connection.h"
#include "server/store/sqlite/integrity_check.h"
#include "server/store/write_queue.h"

namespace hone::store {

// Runs inside a transaction, possibly more than once; only the last run counts.
using SqliteApply = absl::AnyInvocable<absl::Status(SqliteConnection&)>;

// Commits groups of writes on the only connection that writes. If a write fails, only this write is
// undone. Between groups, copies the log into the database file. Changes nothing in a damaged
// store, and waits for the check of the file before the first change (Soundness::AwaitCheck).
class SqliteCommitter final : public GroupCommitter<SqliteApply> {
 public:
  // `checkpoint_pages`: the log is copied when it has this many pages. REQUIRES: `soundness`
  // outlives the committer.
  SqliteCommitter(std::unique_ptr<SqliteConnection> connection, Soundness* soundness,
                  int checkpoint_pages = 4000)
      : connection_(std::move(connection)),
        soundness_(*soundness),
        checkpoint_pages_(checkpoint_pages) {}
  ~SqliteCommitter() override;

  absl::Status Commit(const std::vector<QueuedWrite<SqliteApply>*>& writes) override;
  void AfterGroup() override;
  void HurryUp() override { soundness_.StopWaiting(); }

 private:
  // Savepoints take time, and nearly all writes succeed. Therefore savepoints are used only to
  // repeat a group in which a write has failed.
  absl::Status TryGroup(const std::vector<QueuedWrite<SqliteApply>*>& writes, bool savepoints);
  absl::Status ApplyOne(QueuedWrite<SqliteApply>& write);
  // Rolls the transaction back if it is still open, and returns `why`.
  absl::Status UndoAll(const absl::Status& why);

  const std::unique_ptr<SqliteConnection> connection_;
  Soundness& soundness_;
  const int checkpoint_pages_;
};

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_COMMITTER_H_
