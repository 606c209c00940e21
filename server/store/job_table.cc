#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/job_columns.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

absl::StatusOr<JobRow> SelectOne(Connection& connection, absl::string_view column,
                                 const std::string& value, absl::string_view condition = "") {
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare(absl::StrCat("SELECT ", kJobColumns, " FROM job WHERE ",
                                                        column, " = ?", condition)));
  statement.Bind(value);
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::NotFoundError(absl::StrCat("no job has ", column, " '", value, "'"));
  return ReadJob(statement);
}

}  // namespace

std::string UpsertJobSql() {
  // REPLACE would delete the row that the job's events refer to.
  return absl::StrCat("INSERT INTO job (", kJobColumns,
                      ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                      " ON CONFLICT (id) DO UPDATE SET request_id = excluded.request_id,"
                      " request = excluded.request, state = excluded.state, error = excluded.error,"
                      " summary = excluded.summary, created_unix_ms = excluded.created_unix_ms,"
                      " updated_unix_ms = excluded.updated_unix_ms, owner = excluded.owner,"
                      " priority = excluded.priority");
}

absl::Status UpsertJob(Connection& connection, const JobRow& job) {
  HONE_RETURN_IF_ERROR(CheckJob(job));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(UpsertJobSql()));
  BindJob(statement, job);
  const absl::Status written = statement.Run();
  return absl::IsAlreadyExists(written) ? SameRequestError(job) : written;
}

absl::Status InsertEvent(Connection& connection, const JobEvent& event) {
  {
    HONE_ASSIGN_OR_RETURN(
        Statement insert,
        connection.Prepare("INSERT INTO job_event (job, number, kind, payload)"
                           " SELECT id, ?2, ?3, ?4 FROM job WHERE id = ?1 AND ?2 ="
                           " COALESCE((SELECT number + 1 FROM job_event WHERE job = ?1"
                           " ORDER BY number DESC LIMIT 1), 0) RETURNING 1"));
    insert.Bind(event.job_id).Bind(event.number).Bind(event.kind).BindBlob(event.payload);
    HONE_ASSIGN_OR_RETURN(const bool inserted, insert.Step());
    if (inserted) return absl::OkStatus();
  }
  // The event was refused. Find out why.
  HONE_RETURN_IF_ERROR(SelectOne(connection, "id", event.job_id).status());
  int64_t next = 0;
  {
    HONE_ASSIGN_OR_RETURN(Statement last,
                          connection.Prepare("SELECT number + 1 FROM job_event WHERE job = ?"
                                             " ORDER BY number DESC LIMIT 1"));
    last.Bind(event.job_id);
    HONE_ASSIGN_OR_RETURN(const bool any, last.Step());
    if (any) next = last.Int64();
  }
  return EventNumberError(event, next);
}

absl::Status CheckStep(Connection& connection, const JobStep& step) {
  if (step.event < 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(Statement event,
                        connection.Prepare("SELECT 1 FROM job_event WHERE job = ? AND number = ?"));
  event.Bind(step.job_id).Bind(step.event);
  HONE_ASSIGN_OR_RETURN(const bool logged, event.Step());
  return logged ? absl::OkStatus() : NoEventError(step);
}

absl::StatusOr<JobRow> SelectJob(Connection& connection, const std::string& id) {
  return SelectOne(connection, "id", id);
}

absl::StatusOr<JobRow> SelectJobByRequest(Connection& connection, const std::string& request_id) {
  if (request_id.empty()) return absl::NotFoundError("the empty request id names no job");
  // SQLite uses the partial index only if the statement repeats its condition.
  return SelectOne(connection, "request_id", request_id, " AND request_id <> ''");
}

absl::StatusOr<std::vector<JobRow>> SelectJobs(Connection& connection, int page_size,
                                               const std::string& after_id) {
  if (page_size < 1 || page_size > 1000) {
    return absl::InvalidArgumentError(absl::StrCat("a page has 1 to 1000 jobs, not ", page_size));
  }
  int64_t before = 0;
  if (!after_id.empty()) {
    HONE_ASSIGN_OR_RETURN(const JobRow last, SelectOne(connection, "id", after_id));
    before = last.created_unix_ms;
  }
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare(absl::StrCat(
                            "SELECT ", kJobColumns, " FROM job",
                            after_id.empty() ? "" : " WHERE (created_unix_ms, id) < (?, ?)",
                            " ORDER BY created_unix_ms DESC, id DESC LIMIT ?")));
  if (!after_id.empty()) statement.Bind(before).Bind(after_id);
  statement.Bind(int64_t{page_size});
  std::vector<JobRow> jobs;
  HONE_RETURN_IF_ERROR(
      Connection::ForEachRow(statement, [&] { jobs.push_back(ReadJob(statement)); }));
  return jobs;
}

std::string UnfinishedJobsSql() {
  return absl::StrCat("SELECT ", kJobColumns, " FROM job WHERE ", kUnfinished, " ORDER BY id");
}

absl::StatusOr<std::vector<JobRow>> SelectUnfinishedJobs(Connection& connection) {
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(UnfinishedJobsSql()));
  std::vector<JobRow> jobs;
  HONE_RETURN_IF_ERROR(
      Connection::ForEachRow(statement, [&] { jobs.push_back(ReadJob(statement)); }));
  return jobs;
}

absl::StatusOr<std::vector<JobEvent>> SelectEvents(Connection& connection,
                                                   const std::string& job_id) {
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare("SELECT number, kind, payload FROM job_event"
                                           " WHERE job = ? ORDER BY number"));
  statement.Bind(job_id);
  std::vector<JobEvent> events;
  HONE_RETURN_IF_ERROR(Connection::ForEachRow(statement, [&] {
    JobEvent& event = events.emplace_back(JobEvent{.job_id = job_id});
    event.number = statement.Int64();
    event.kind = statement.Text();
    event.payload = statement.Blob();
  }));
  return events;
}

}  // namespace hone::store
