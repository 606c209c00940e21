// What is remembered of workers, on PostgreSQL.

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/postgres_tables.h"
#include "server/store/standing_columns.h"

namespace hone::store::postgres {

PostgresCommand UpsertStanding(const WorkerStanding& standing) {
  if (IsGood(standing)) {
    PostgresCommand forget{.sql = "DELETE FROM standing WHERE worker = $1"};
    forget.params.Bind(absl::string_view(standing.worker_id));
    return forget;
  }
  PostgresCommand put{
      .sql = absl::StrCat("INSERT INTO standing (", kStandingColumns,
                          ") VALUES ($1, $2, $3, $4, $5) ON CONFLICT (worker) DO UPDATE SET"
                          " drained = excluded.drained, refused = excluded.refused,"
                          " removed = excluded.removed, since_unix_ms = excluded.since_unix_ms")};
  BindStanding(put.params, standing);
  return put;
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
