#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

constexpr char kWorkerColumns[] = "name, identity, host, target, can_build, can_run, seen_unix_ms";

constexpr char kStandingColumns[] = "worker, identity, drained, refused, removed, since_unix_ms";

WorkerStanding ReadStanding(Statement& row) {
  WorkerStanding standing;
  standing.worker_id = row.Text();
  standing.identity = row.Text();
  standing.drained = row.Bool();
  standing.refused = row.Raw();
  standing.removed = row.Bool();
  standing.since_unix_ms = row.Int64();
  return standing;
}

void Merge(const StandingChange& change, WorkerStanding& standing) {
  standing.worker_id = change.worker_id;
  standing.since_unix_ms = change.since_unix_ms;
  if (change.drained.has_value()) standing.drained = *change.drained;
  const bool flag = change.refused.has_value() && !change.refused->empty() && !change.removed;
  if (!change.refused.has_value() || (flag && standing.removed)) return;
  standing.refused = *change.refused;
  standing.identity = standing.refused.empty() ? "" : change.identity;
  standing.removed = change.removed && !change.refused->empty();
}

absl::Status MergeStanding(Connection& connection, const StandingChange& change) {
  if (change.worker_id.empty()) {
    return absl::InvalidArgumentError("a standing needs a worker's name");
  }
  HONE_ASSIGN_OR_RETURN(Statement known,
                        connection.Prepare(absl::StrCat("SELECT ", kStandingColumns,
                                                        " FROM standing WHERE worker = ?")));
  HONE_ASSIGN_OR_RETURN(const bool row, known.Bind(change.worker_id).Step());
  WorkerStanding standing = row ? ReadStanding(known) : WorkerStanding();
  Merge(change, standing);
  if (!standing.drained && standing.refused.empty()) {
    return connection.Run("DELETE FROM standing WHERE worker = ?", standing.worker_id);
  }
  HONE_ASSIGN_OR_RETURN(
      Statement put, connection.Prepare(absl::StrCat(
                         "INSERT INTO standing (", kStandingColumns,
                         ") VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (worker) DO UPDATE SET"
                         " identity = excluded.identity,"
                         " drained = excluded.drained, refused = excluded.refused,"
                         " removed = excluded.removed, since_unix_ms = excluded.since_unix_ms")));
  put.Bind(standing.worker_id).Bind(standing.identity).BindBool(standing.drained);
  put.BindRaw(standing.refused).BindBool(standing.removed).Bind(standing.since_unix_ms);
  return put.Run();
}

absl::Status UpsertWorker(Connection& connection, const KnownWorker& worker) {
  if (worker.worker_id.empty()) return absl::InvalidArgumentError("a worker needs a name");
  HONE_ASSIGN_OR_RETURN(Statement put,
                        connection.Prepare(absl::StrCat(
                            "INSERT INTO worker (", kWorkerColumns,
                            ") VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
                            " identity = excluded.identity, host = excluded.host,"
                            " target = excluded.target, can_build = excluded.can_build,"
                            " can_run = excluded.can_run, seen_unix_ms = excluded.seen_unix_ms")));
  put.Bind(worker.worker_id).Bind(worker.identity).Bind(worker.host).Bind(worker.target);
  put.BindBool(worker.can_build).BindBool(worker.can_run).Bind(worker.seen_unix_ms);
  HONE_RETURN_IF_ERROR(put.Run());
  return connection.Run("DELETE FROM worker WHERE seen_unix_ms <= ?",
                        worker.seen_unix_ms - Store::kWorkerMemoryMs);
}

}  // namespace

void Store::ChangeStanding(StandingChange change, Done done) {
  const size_t bytes = kRowBytes + change.refused.value_or("").size();
  Write([change = std::move(change)](Connection& c) { return MergeStanding(c, change); },
        std::move(done), bytes, WhenFull::kFail);
}

absl::StatusOr<std::vector<WorkerStanding>> Store::Standings() {
  return Get([](Connection& c) -> absl::StatusOr<std::vector<WorkerStanding>> {
    HONE_ASSIGN_OR_RETURN(Statement all, c.Prepare(absl::StrCat("SELECT ", kStandingColumns,
                                                                " FROM standing ORDER BY 1")));
    return Connection::ReadAll(all, ReadStanding);
  });
}

void Store::PutWorker(KnownWorker worker, Done done) {
  Write([worker = std::move(worker)](Connection& c) { return UpsertWorker(c, worker); },
        std::move(done), kRowBytes, WhenFull::kFail);
}

absl::StatusOr<std::vector<KnownWorker>> Store::Workers() {
  return Get([](Connection& c) -> absl::StatusOr<std::vector<KnownWorker>> {
    HONE_ASSIGN_OR_RETURN(Statement all, c.Prepare(absl::StrCat("SELECT ", kWorkerColumns,
                                                                " FROM worker ORDER BY 1")));
    return Connection::ReadAll(all, [](Statement& row) {
      KnownWorker worker;
      worker.worker_id = row.Text();
      worker.identity = row.Text();
      worker.host = row.Text();
      worker.target = row.Text();
      worker.can_build = row.Bool();
      worker.can_run = row.Bool();
      worker.seen_unix_ms = row.Int64();
      return worker;
    });
  });
}

}  // namespace hone::store
