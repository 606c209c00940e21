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

absl::Status UpsertStanding(Connection& connection, const WorkerStanding& standing) {
  if (standing.worker_id.empty()) {
    return absl::InvalidArgumentError("a standing needs a worker's name");
  }
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

void Store::PutStanding(WorkerStanding standing, Done done) {
  const size_t bytes = kRowBytes + standing.refused.size();
  Write([standing = std::move(standing)](Connection& c) { return UpsertStanding(c, standing); },
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
