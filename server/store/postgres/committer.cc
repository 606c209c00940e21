#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "server/store/postgres/postgres_store.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

// How long a leader tries to continue its epoch after its connection broke.
constexpr absl::Duration kPatience = absl::Seconds(5);
constexpr absl::Duration kFirstWait = absl::Milliseconds(20);
constexpr absl::Duration kLongestWait = absl::Milliseconds(500);
constexpr absl::Duration kPatienceInAHurry = absl::Milliseconds(200);

absl::Status Deposed(absl::string_view why) {
  return absl::AbortedError(absl::StrCat("this server does not lead any more: ", why));
}

}  // namespace

absl::Status CheckLeaderSettings(PostgresConnection& connection) {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection.Query("SELECT current_setting('transaction_read_only') = 'on',"
                                         " current_setting('synchronous_commit') = 'off'"));
  rows.Next();
  if (rows.Bool()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the PostgreSQL ", connection.name(),
        " only accepts reads: name its primary, or all hosts with target_session_attrs=read-write "
        "(postgresql://a,b/hone?target_session_attrs=read-write)"));
  }
  if (rows.Bool()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the PostgreSQL ", connection.name(),
        " has synchronous_commit = off, so it could lose writes that were acknowledged: set it to "
        "on for this database (ALTER DATABASE … SET synchronous_commit = on)"));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> PostgresCommitter::Lock() {
  if (connection_ != nullptr && connection_->IsLost()) connection_.reset();
  if (connection_ == nullptr) {
    HONE_ASSIGN_OR_RETURN(connection_, PostgresConnection::Open(place_));
    // The database ends the session, and with it the leadership, if this server stops or its
    // machine is lost. A leader writes more often than this (PostgresStore::KeepLeading).
    HONE_RETURN_IF_ERROR(connection_->Execute("SET idle_session_timeout = '8s'"));
  }
  // Stores in other schemas of the database have other locks.
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection_->Query("SELECT pg_try_advisory_lock(1213156934, 'leader'::regclass::oid::int4)"));
  return rows.Next() && rows.Bool();
}

absl::StatusOr<bool> PostgresCommitter::Lead() {
  absl::MutexLock lock(&mutex_);
  const auto begin = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) -> absl::StatusOr<bool> {
    HONE_ASSIGN_OR_RETURN(const bool locked, Lock());
    if (!locked) return false;
    HONE_RETURN_IF_ERROR(CheckLeaderSettings(*connection_));
    HONE_RETURN_IF_ERROR(MigratePostgres(*connection_, PostgresMigrations()));
    HONE_ASSIGN_OR_RETURN(
        PostgresRows rows,
        connection_->Query("UPDATE leader SET epoch = epoch + 1 RETURNING epoch, last_group"));
    if (!rows.Next()) return absl::DataLossError("the table leader has no row");
    epoch_ = rows.Int64();
    group_ = committed_ = rows.Int64();
    return true;
  };
  absl::StatusOr<bool> leads = begin();
  if (!leads.ok()) connection_.reset();  // releases the lock
  if (leads.ok() && *leads) SetLeading(absl::OkStatus());
  return leads;
}

void PostgresCommitter::SetLeading(const absl::Status& leading) {
  absl::MutexLock lock(&leading_mutex_);
  leading_ = leading;
}

void PostgresCommitter::GiveUp(const absl::Status& why) {
  absl::MutexLock lock(&leading_mutex_);
  if (leading_.ok()) leading_ = Deposed(why.message());
}

absl::Status PostgresCommitter::leading() const {
  absl::MutexLock lock(&leading_mutex_);
  return leading_;
}

absl::StatusOr<int64_t> PostgresCommitter::Continue() {
  connection_.reset();
  HONE_ASSIGN_OR_RETURN(const bool locked, Lock());
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection_->Query("SELECT epoch, last_group FROM leader"));
  if (!rows.Next() || rows.Int64() != epoch_) return Deposed("another server leads");
  // The earlier session may not have ended, or another server has the lock but not an epoch yet.
  if (!locked) return absl::UnavailableError("the lock of the leader is taken");
  HONE_RETURN_IF_ERROR(CheckLeaderSettings(*connection_));
  const int64_t last = rows.Int64();
  if (last != group_ && last != committed_) return Deposed("the database has lost commits");
  return last;
}

absl::Status PostgresCommitter::Commit(const std::vector<QueuedWrite<PostgresWork>*>& writes) {
  absl::MutexLock lock(&mutex_);
  HONE_RETURN_IF_ERROR(leading());
  ++group_;
  absl::Status status = TryGroup(writes);
  const absl::Time began = SteadyNow();
  absl::Duration wait = kFirstWait;
  while (absl::IsUnavailable(status)) {
    spdlog::warn("store: tries again: {}", std::string(status.message()));
    const bool is_late = SteadyNow() > began + (hurry_ ? kPatienceInAHurry : kPatience);
    const absl::StatusOr<int64_t> last = Continue();
    if (last.ok() && *last == group_) {
      status = absl::OkStatus();
    } else if (last.ok()) {
      if (is_late) break;  // the database answers, but does not take this group
      status = TryGroup(writes);
    } else if (absl::IsAborted(last.status())) {
      status = last.status();
    } else if (is_late) {
      status = Deposed(last.status().message());
    }
    if (absl::IsUnavailable(status)) absl::SleepFor(wait);
    wait = std::min(kLongestWait, wait * 2);
  }
  if (status.ok()) committed_ = group_;
  if (absl::IsAborted(status)) {
    connection_.reset();
    SetLeading(status);
  }
  return status;
}

absl::Status PostgresCommitter::TryGroup(const std::vector<QueuedWrite<PostgresWork>*>& writes) {
  HONE_RETURN_IF_ERROR(connection_->Execute("BEGIN"));
  absl::Status status = RunWrites(writes);
  if (status.ok()) status = connection_->Execute("COMMIT");
  if (!connection_->IsLost() && connection_->InTransaction()) {
    connection_->Execute("ROLLBACK").IgnoreError();
  }
  return status;
}

absl::Status PostgresCommitter::RunWrites(const std::vector<QueuedWrite<PostgresWork>*>& writes) {
  // Locks the row until the end of the transaction. A new leader cannot change the epoch until
  // then.
  PostgresCommand mark{.sql = "UPDATE leader SET last_group = $2 WHERE epoch = $1"};
  mark.params.Bind(epoch_.load()).Bind(group_);
  std::vector<PostgresCommand*> commands = {&mark};
  const bool alone = IsAlone(writes.front()->work);
  if (!alone) {
    for (QueuedWrite<PostgresWork>* const write : writes) commands.push_back(&write->work.command);
  }
  HONE_ASSIGN_OR_RETURN(std::vector<PostgresRows> rows, connection_->Pipeline(commands));
  if (rows.size() != commands.size()) return absl::InternalError("a statement has no result");
  if (rows[0].changed() != 1) return Deposed("another server leads");
  if (alone) return writes.front()->work.apply(*connection_);
  for (size_t i = 0; i < writes.size(); ++i)
    writes[i]->result = writes[i]->work.on_rows(rows[i + 1]);
  return absl::OkStatus();
}

}  // namespace hone::store
