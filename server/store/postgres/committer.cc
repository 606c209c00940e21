#include "server/store/postgres/committer.h"

#include <algorithm>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

// How long writes wait for a database that cannot be reached.
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr absl::Duration kFirstWait = absl::Milliseconds(20);
constexpr absl::Duration kLongestWait = absl::Seconds(1);
constexpr absl::Duration kLongestWaitInAHurry = absl::Milliseconds(200);

}  // namespace

absl::Status PostgresCommitter::Commit(const std::vector<QueuedWrite<PostgresWork>*>& writes) {
  const absl::Time deadline = SteadyNow() + kPatience;
  absl::Duration wait = kFirstWait;
  while (true) {
    absl::Status status = TryGroup(writes);
    if (!absl::IsUnavailable(status)) return status;
    // When the store closes, the writes are tried again without long waits.
    if (SteadyNow() + wait > deadline || (hurry_ && wait > kLongestWaitInAHurry)) {
      pending_transaction_.clear();  // it belonged to these writes only
      return status;
    }
    spdlog::warn("store: tries again: {}", std::string(status.message()));
    absl::SleepFor(wait);
    wait = std::min(kLongestWait, wait * 2);
  }
}

absl::Status PostgresCommitter::Connect() {
  if (connection_ != nullptr && !connection_->IsLost()) return absl::OkStatus();
  connection_.reset();
  HONE_ASSIGN_OR_RETURN(connection_, PostgresConnection::Open(place_));
  return absl::OkStatus();
}

absl::Status PostgresCommitter::AskAboutCommit() {
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection_->Query("SELECT pg_xact_status($1::text::xid8)",
                         PostgresParams().Bind(absl::string_view(pending_transaction_))));
  rows.Next();
  const std::string status = rows.Text();
  if (status == "in progress") return absl::UnavailableError("a commit is still in progress");
  pending_transaction_.clear();
  if (status == "committed") return absl::OkStatus();
  return absl::AbortedError("the transaction was rolled back");
}

absl::Status PostgresCommitter::TryGroup(const std::vector<QueuedWrite<PostgresWork>*>& writes) {
  HONE_RETURN_IF_ERROR(Connect());
  if (!pending_transaction_.empty()) {
    const absl::Status asked = AskAboutCommit();
    if (!absl::IsAborted(asked)) return asked;
  }
  HONE_RETURN_IF_ERROR(connection_->Execute("BEGIN"));
  absl::Status status = RunWrites(writes);
  if (status.ok()) {
    status = connection_->Execute("COMMIT");
    // Otherwise the connection broke again, and the next attempt asks the database.
    if (status.ok() || !connection_->IsLost()) pending_transaction_.clear();
  } else {
    pending_transaction_.clear();
  }
  if (!connection_->IsLost() && connection_->InTransaction()) {
    connection_->Execute("ROLLBACK").IgnoreError();
  }
  return status;
}

absl::Status PostgresCommitter::RunWrites(const std::vector<QueuedWrite<PostgresWork>*>& writes) {
  PostgresCommand lock{.sql = kTakeWriteLock};
  PostgresCommand name{.sql = "SELECT pg_current_xact_id()::text"};
  std::vector<PostgresCommand*> commands = {&lock, &name};
  const bool alone = writes.front()->work.apply != nullptr;
  if (!alone) {
    for (QueuedWrite<PostgresWork>* const write : writes) commands.push_back(&write->work.command);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<PostgresRows> rows, connection_->Pipeline(commands));
  if (rows.size() != commands.size()) return absl::InternalError("a statement has no result");
  rows[1].Next();
  pending_transaction_ = rows[1].Text();
  if (alone) return writes.front()->work.apply(*connection_);
  for (size_t i = 0; i < writes.size(); ++i)
    writes[i]->result = writes[i]->work.on_rows(rows[i + 2]);
  return absl::OkStatus();
}

}  // namespace hone::store
