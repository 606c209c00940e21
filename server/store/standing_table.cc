#include "server/store/standing_table.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/standing_columns.h"

namespace hone::store {

absl::Status UpsertStanding(SqliteConnection& connection, const WorkerStanding& standing) {
  HONE_RETURN_IF_ERROR(CheckStanding(standing));
  if (IsGood(standing)) {
    HONE_ASSIGN_OR_RETURN(Statement forget,
                          connection.Prepare("DELETE FROM standing WHERE worker = ?"));
    return forget.Bind(standing.worker_id).Run();
  }
  HONE_ASSIGN_OR_RETURN(Statement put, connection.Prepare(absl::StrCat(
                                           "INSERT OR REPLACE INTO standing (", kStandingColumns,
                                           ") VALUES (?, ?, ?, ?, ?)")));
  BindStanding(put, standing);
  return put.Run();
}

absl::StatusOr<std::vector<WorkerStanding>> SelectStandings(SqliteConnection& connection) {
  HONE_ASSIGN_OR_RETURN(
      Statement all,
      connection.Prepare(absl::StrCat("SELECT ", kStandingColumns, " FROM standing ORDER BY 1")));
  std::vector<WorkerStanding> standings;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, all.Step());
    if (!row) return standings;
    standings.push_back(ReadStanding(all));
  }
}

}  // namespace hone::store
