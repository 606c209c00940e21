#include "server/store/sqlite/committer.h"

#include <algorithm>
#include <string>

#include "common/base/status_macros.h"
#include "server/store/sqlite/connection.h"
#include "spdlog/spdlog.h"

namespace hone::store {

SqliteCommitter::~SqliteCommitter() {
  if (!soundness_.status().ok()) connection_->KeepLog();
}

absl::Status SqliteCommitter::Commit(const std::vector<QueuedWrite<SqliteApply>*>& writes) {
  HONE_RETURN_IF_ERROR(soundness_.status());
  for (QueuedWrite<SqliteApply>* const write : writes) write->result = absl::OkStatus();
  absl::Status status = TryGroup(writes, /*savepoints=*/false);
  const bool failed = std::any_of(writes.begin(), writes.end(),
                                  [](const auto* write) { return !write->result.ok(); });
  if (failed && !IsDamaged(status)) status = TryGroup(writes, /*savepoints=*/true);
  soundness_.Note(status);
  return status;
}

absl::Status SqliteCommitter::TryGroup(const std::vector<QueuedWrite<SqliteApply>*>& writes,
                                       bool savepoints) {
  HONE_RETURN_IF_ERROR(connection_->Execute("BEGIN IMMEDIATE"));
  const int64_t changes = connection_->Changes();
  absl::Status status;
  for (QueuedWrite<SqliteApply>* const write : writes) {
    write->result = savepoints ? ApplyOne(*write) : write->work(*connection_);
    // After some errors, SQLite rolls the whole transaction back by itself, including the earlier
    // writes of the group.
    if (!connection_->InTransaction()) {
      return write->result.ok() ? absl::InternalError("the transaction ended too early")
                                : write->result;
    }
    // Without space, no later write may be committed before this one.
    if ((!savepoints && !write->result.ok()) || IsDamaged(write->result) ||
        absl::IsResourceExhausted(write->result)) {
      return UndoAll(write->result);
    }
  }
  // A server that only answers look-ups changes nothing, and its start need not wait.
  if (connection_->Changes() != changes) status = soundness_.AwaitCheck();
  if (status.ok()) status = connection_->Execute("COMMIT");
  return status.ok() ? status : UndoAll(status);
}

absl::Status SqliteCommitter::UndoAll(const absl::Status& why) {
  if (!connection_->InTransaction()) return why;
  if (const absl::Status undone = connection_->Execute("ROLLBACK"); !undone.ok()) {
    spdlog::error("store: {}", std::string(undone.message()));
  }
  return why;
}

absl::Status SqliteCommitter::ApplyOne(QueuedWrite<SqliteApply>& write) {
  HONE_RETURN_IF_ERROR(connection_->Run("SAVEPOINT one"));
  absl::Status status = write.work(*connection_);
  if (!connection_->InTransaction()) return status;
  if (!status.ok()) HONE_RETURN_IF_ERROR(connection_->Run("ROLLBACK TO one"));
  HONE_RETURN_IF_ERROR(connection_->Run("RELEASE one"));
  return status;
}

void SqliteCommitter::AfterGroup() {
  if (connection_->LogPages() < checkpoint_pages_ || !soundness_.status().ok()) return;
  // A failure loses nothing, because the log contains every page. The checkpoint is repeated after
  // the next group.
  if (const absl::Status status = connection_->Checkpoint(); !status.ok()) {
    soundness_.Note(status);
    spdlog::warn("store: the log could not be copied, which is tried again: {}",
                 std::string(status.message()));
  }
}

}  // namespace hone::store
