// Compaction on PostgreSQL. It handles whole tables at a time, because PostgreSQL's row versions
// keep it from blocking others.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/job_columns.h"
#include "server/store/postgres/commands.h"
#include "server/store/postgres/committer.h"

namespace hone::store::postgres {
namespace {

absl::StatusOr<int64_t> Run(PostgresConnection& connection, const std::string& sql,
                            const PostgresParams& params) {
  HONE_ASSIGN_OR_RETURN(const PostgresRows rows, connection.Query(sql, params));
  return rows.changed();
}

absl::Status Remove(PostgresConnection& connection, const CompactOptions& options,
                    CompactReport& report) {
  PostgresParams keep;
  keep.Bind(options.keep_unix_ms);
  PostgresParams records = keep;
  records.Bind(int64_t{options.keep_best});
  // Unfinished jobs may need rows that were put since the oldest of them began.
  HONE_ASSIGN_OR_RETURN(
      PostgresRows oldest,
      connection.Query(
          absl::StrCat("SELECT COALESCE(MIN(created_unix_ms), $1) FROM job WHERE ", kUnfinished),
          keep));
  oldest.Next();
  PostgresParams put_before;
  put_before.Bind(std::min(options.keep_unix_ms, oldest.Int64()));

  HONE_RETURN_IF_ERROR(
      Run(connection, "DELETE FROM best WHERE replaced_unix_ms < $1", keep).status());
  HONE_ASSIGN_OR_RETURN(
      report.records_removed,
      Run(connection,
          absl::StrCat("DELETE FROM record r WHERE created_unix_ms < $1"
                       " AND NOT EXISTS (SELECT 1 FROM best WHERE record = r.id)"
                       " AND NOT EXISTS (SELECT 1 FROM job WHERE id = r.job AND ",
                       kUnfinished,
                       ") AND NOT EXISTS (SELECT 1 FROM (SELECT id, row_number() OVER"
                       " (PARTITION BY workload, target ORDER BY latency_ns, id) AS rank"
                       " FROM record WHERE outcome = 'ok' AND NOT quarantined) ranked"
                       " WHERE ranked.id = r.id AND rank <= $2)"),
          records));
  const std::string old_job = absl::StrCat(
      "NOT (", kUnfinished,
      ") AND updated_unix_ms < $1 AND NOT EXISTS (SELECT 1 FROM record WHERE record.job = job.id)");
  HONE_RETURN_IF_ERROR(
      Run(connection,
          absl::StrCat("DELETE FROM job_event WHERE job IN (SELECT id FROM job WHERE ", old_job,
                       ")"),
          keep)
          .status());
  HONE_ASSIGN_OR_RETURN(report.jobs_removed,
                        Run(connection, absl::StrCat("DELETE FROM job WHERE ", old_job), keep));
  HONE_ASSIGN_OR_RETURN(report.texts_removed,
                        Run(connection,
                            "DELETE FROM text WHERE put_unix_ms < $1 AND digest NOT IN"
                            " (SELECT workload FROM record UNION SELECT space FROM record)",
                            put_before));
  HONE_ASSIGN_OR_RETURN(report.artifacts_removed,
                        Run(connection,
                            "DELETE FROM artifact WHERE put_unix_ms < $1 AND digest NOT IN"
                            " (SELECT r.artifact FROM best b JOIN record r ON r.id = b.record)",
                            put_before));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CompactReport> Compact(PostgresConnection& connection, const CompactOptions& options,
                                      int64_t epoch) {
  if (options.keep_best < 0 || options.keep_unix_ms < 0) {
    return absl::InvalidArgumentError("keep_unix_ms and keep_best must not be negative");
  }
  CompactReport report;
  HONE_ASSIGN_OR_RETURN(report.bytes_before, connection.SizeBytes());
  if (options.keep_unix_ms > 0) {
    HONE_RETURN_IF_ERROR(connection.Execute("BEGIN"));
    absl::Status removed = CheckEpoch(connection, epoch);
    if (removed.ok()) removed = Remove(connection, options, report);
    // A dry run is rolled back.
    const bool keep = removed.ok() && !options.dry_run;
    const absl::Status ended = connection.Execute(keep ? "COMMIT" : "ROLLBACK");
    HONE_RETURN_IF_ERROR(removed);
    HONE_RETURN_IF_ERROR(ended);
  }
  // Frees the space for new rows. The database also truncates unused pages at the ends of files.
  if (!options.dry_run) HONE_RETURN_IF_ERROR(connection.Execute("VACUUM"));
  HONE_ASSIGN_OR_RETURN(report.bytes_after, connection.SizeBytes());
  return report;
}

}  // namespace hone::store::postgres
