#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/standing_change.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

constexpr char kWorkerColumns[] = "name, identity, host, target, can_build, can_run, seen_unix_ms";

constexpr char kStandingColumns[] = "worker, identity, drained, refused, removed, since_unix_ms";

void BindStanding(Statement& s, const WorkerStanding& standing) {
  s.Bind(standing.worker_id)
      .Bind(standing.identity)
      .BindBool(standing.drained)
      .BindRaw(standing.refused);
  s.BindBool(standing.removed).Bind(standing.since_unix_ms);
}

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

}  // namespace

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
  HONE_ASSIGN_OR_RETURN(Statement forget,
                        connection.Prepare("DELETE FROM worker WHERE seen_unix_ms <= ?"));
  return forget.Bind(worker.seen_unix_ms - Store::kWorkerMemoryMs).Run();
}

absl::StatusOr<std::vector<KnownWorker>> SelectWorkers(Connection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement all, connection.Prepare(absl::StrCat("SELECT ", kWorkerColumns,
                                                                       " FROM worker ORDER BY 1")));
  std::vector<KnownWorker> workers;
  HONE_RETURN_IF_ERROR(Connection::ForEachRow(all, [&] {
    KnownWorker& worker = workers.emplace_back();
    worker.worker_id = all.Text();
    worker.identity = all.Text();
    worker.host = all.Text();
    worker.target = all.Text();
    worker.can_build = all.Bool();
    worker.can_run = all.Bool();
    worker.seen_unix_ms = all.Int64();
  }));
  return workers;
}

absl::Status MergeStanding(Connection& connection, const StandingChange& change) {
  HONE_RETURN_IF_ERROR(CheckChange(change));
  HONE_ASSIGN_OR_RETURN(Statement known,
                        connection.Prepare(absl::StrCat("SELECT ", kStandingColumns,
                                                        " FROM standing WHERE worker = ?")));
  HONE_ASSIGN_OR_RETURN(const bool row, known.Bind(change.worker_id).Step());
  WorkerStanding standing = row ? ReadStanding(known) : WorkerStanding();
  Merge(change, standing);
  if (IsGood(standing)) {
    HONE_ASSIGN_OR_RETURN(Statement forget,
                          connection.Prepare("DELETE FROM standing WHERE worker = ?"));
    return forget.Bind(standing.worker_id).Run();
  }
  HONE_ASSIGN_OR_RETURN(
      Statement put, connection.Prepare(absl::StrCat(
                         "INSERT INTO standing (", kStandingColumns,
                         ") VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (worker) DO UPDATE SET"
                         " identity = excluded.identity,"
                         " drained = excluded.drained, refused = excluded.refused,"
                         " removed = excluded.removed, since_unix_ms = excluded.since_unix_ms")));
  BindStanding(put, standing);
  return put.Run();
}

absl::StatusOr<std::vector<WorkerStanding>> SelectStandings(Connection& connection) {
  HONE_ASSIGN_OR_RETURN(
      Statement all,
      connection.Prepare(absl::StrCat("SELECT ", kStandingColumns, " FROM standing ORDER BY 1")));
  std::vector<WorkerStanding> standings;
  HONE_RETURN_IF_ERROR(
      Connection::ForEachRow(all, [&] { standings.push_back(ReadStanding(all)); }));
  return standings;
}

}  // namespace hone::store
