#include "server/store/standing_table.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/standing_columns.h"

namespace hone::store {

absl::Status MergeStanding(SqliteConnection& connection, const StandingChange& change) {
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
