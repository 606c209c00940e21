#include "server/store/postgres/commands.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/job_columns.h"
#include "server/store/record_columns.h"

namespace hone::store::postgres {
namespace {

// "$from, …, $to"
std::string Parameters(int from, int to) {
  std::string text = absl::StrCat("$", from);
  for (int i = from + 1; i <= to; ++i) absl::StrAppend(&text, ", $", i);
  return text;
}

std::string InsertRecordSql() {
  const RecordColumns& columns = Columns();
  const int first = columns.insert_count + 1;  // of the environment's parameters
  const std::string environment = Parameters(first, first + columns.environment_count - 1);
  const int step = first + columns.environment_count;  // the job and its event
  const std::string event = absl::StrCat("CAST($", step + 1, " AS bigint)");
  const std::string same = absl::StrCat("SELECT id FROM environment WHERE (", columns.environment,
                                        ") = (", environment, ")");
  // The record needs no event, or one that is stored.
  return absl::StrCat(
      "WITH known AS (", same, "), logged AS (SELECT 1 WHERE ", event,
      " < 0 OR EXISTS (SELECT 1 FROM job_event WHERE job = $", step, " AND number = ", event,
      ")), added AS (INSERT INTO environment (", columns.environment, ") SELECT ", environment,
      " FROM logged WHERE NOT EXISTS (SELECT 1 FROM known) RETURNING id), done AS (INSERT "
      "INTO record (",
      columns.insert, ", environment) SELECT ", Parameters(1, columns.insert_count),
      ", COALESCE((SELECT id FROM known), (SELECT id FROM added)) FROM logged RETURNING id)"
      " SELECT COALESCE((SELECT id FROM done), 0)");
}

}  // namespace

PostgresCommand InsertRecord(const record::Record& record, const JobStep& step) {
  static const auto* const sql = new std::string(InsertRecordSql());
  PostgresCommand command{.sql = *sql};
  BindRecord(command.params, record);
  BindEnvironment(command.params, record.environment);
  command.params.Bind(absl::string_view(step.job_id)).Bind(step.event);
  return command;
}

absl::StatusOr<int64_t> InsertedRecord(const JobStep& step, PostgresRows& rows) {
  if (!rows.Next()) return absl::InternalError("a record's statement has no row");
  const int64_t id = rows.Int64();
  if (id == 0) return NoEventError(step);
  return id;
}

PostgresCommand InsertEvent(const JobEvent& event) {
  PostgresCommand command{
      .sql =
          "WITH known AS (SELECT 1 FROM job WHERE id = $1),"
          " next AS (SELECT COALESCE(MAX(number) + 1, 0) AS number FROM job_event WHERE job = $1),"
          " done AS (INSERT INTO job_event (job, number, kind, payload)"
          " SELECT $1, $2, $3, $4 FROM known, next WHERE next.number = $2 RETURNING 1)"
          " SELECT (SELECT COUNT(*) FROM known), (SELECT number FROM next),"
          " (SELECT COUNT(*) FROM done)"};
  command.params.Bind(absl::string_view(event.job_id)).Bind(event.number);
  command.params.Bind(absl::string_view(event.kind)).BindBlob(event.payload);
  return command;
}

absl::Status CheckEventInserted(const JobEvent& event, PostgresRows& rows) {
  if (!rows.Next()) return absl::InternalError("an event's statement has no row");
  if (rows.Int64() == 0) {
    return absl::NotFoundError(absl::StrCat("no job has id '", event.job_id, "'"));
  }
  const int64_t next = rows.Int64();
  return rows.Int64() == 0 ? EventNumberError(event, next) : absl::OkStatus();
}

}  // namespace hone::store::postgres
