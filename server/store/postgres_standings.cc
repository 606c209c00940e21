// What is remembered of workers, on PostgreSQL.

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/postgres_tables.h"
#include "server/store/standing_columns.h"

namespace hone::store::postgres {

absl::Status MergeStanding(PostgresConnection& connection, const StandingChange& change) {
  PostgresParams worker;
  worker.Bind(absl::string_view(change.worker_id));
  HONE_ASSIGN_OR_RETURN(
      PostgresRows known,
      connection.Query(
          absl::StrCat("SELECT ", kStandingColumns, " FROM standing WHERE worker = $1"), worker));
  WorkerStanding standing = known.Next() ? ReadStanding(known) : WorkerStanding();
  Merge(change, standing);
  if (IsGood(standing)) {
    return connection.Query("DELETE FROM standing WHERE worker = $1", worker).status();
  }
  PostgresParams put;
  BindStanding(put, standing);
  return connection
      .Query(absl::StrCat("INSERT INTO standing (", kStandingColumns,
                          ") VALUES ($1, $2, $3, $4, $5) ON CONFLICT (worker) DO UPDATE SET"
                          " drained = excluded.drained, refused = excluded.refused,"
                          " removed = excluded.removed, since_unix_ms = excluded.since_unix_ms"),
             put)
      .status();
}

absl::StatusOr<std::vector<WorkerStanding>> SelectStandings(PostgresConnection& connection) {
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection.Query(absl::StrCat("SELECT ", kStandingColumns, " FROM standing ORDER BY 1")));
  std::vector<WorkerStanding> standings;
  while (rows.Next()) standings.push_back(ReadStanding(rows));
  return standings;
}

}  // namespace hone::store::postgres
