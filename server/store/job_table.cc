#include "server/store/job_table.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/status_macros.h"

namespace hone::store {
namespace {

constexpr std::array<absl::string_view, 6> kStates = {"pending", "running",   "confirming",
                                                      "done",    "cancelled", "failed"};

constexpr char kJobColumns[] =
    "id, request_id, request, state, error, summary, created_unix_ms, updated_unix_ms";

JobRow ReadJob(Statement& row) {
  JobRow job;
  job.id = row.Text();
  job.request_id = row.Text();
  job.request = row.Blob();
  job.state = row.Text();
  job.error = row.Text();
  job.summary = row.Blob();
  job.created_unix_ms = row.Int64();
  job.updated_unix_ms = row.Int64();
  return job;
}

absl::StatusOr<JobRow> SelectOne(SqliteConnection& connection, absl::string_view column,
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

absl::Status UpsertJob(SqliteConnection& connection, const JobRow& job) {
  if (job.id.empty()) return absl::InvalidArgumentError("a job needs an id");
  if (std::find(kStates.begin(), kStates.end(), job.state) == kStates.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", job.state, "' is not a job's state; known: ", absl::StrJoin(kStates, ", ")));
  }
  // Not REPLACE, which would delete the row that the job's events refer to.
  HONE_ASSIGN_OR_RETURN(
      Statement statement,
      connection.Prepare(absl::StrCat(
          "INSERT INTO job (", kJobColumns,
          ") VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
          " ON CONFLICT (id) DO UPDATE SET request_id = excluded.request_id,"
          " request = excluded.request, state = excluded.state, error = excluded.error,"
          " summary = excluded.summary, created_unix_ms = excluded.created_unix_ms,"
          " updated_unix_ms = excluded.updated_unix_ms")));
  statement.Bind(job.id).Bind(job.request_id).BindBlob(job.request).Bind(job.state);
  statement.Bind(job.error).BindBlob(job.summary);
  statement.Bind(job.created_unix_ms).Bind(job.updated_unix_ms);
  const absl::Status status = statement.Run();
  if (absl::IsAlreadyExists(status)) {
    return absl::AlreadyExistsError(
        absl::StrCat("another job than '", job.id, "' has request id '", job.request_id, "'"));
  }
  return status;
}

absl::Status InsertEvent(SqliteConnection& connection, const JobEvent& event) {
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
  if (event.number != next) {
    const std::string message = absl::StrCat("the next event of job '", event.job_id,
                                             "' has number ", next, ", not ", event.number);
    return event.number < next ? absl::AlreadyExistsError(message)
                               : absl::FailedPreconditionError(message);
  }
  HONE_ASSIGN_OR_RETURN(
      Statement insert,
      connection.Prepare("INSERT INTO job_event (job, number, kind, payload) VALUES (?, ?, ?, ?)"));
  insert.Bind(event.job_id).Bind(event.number).Bind(event.kind).BindBlob(event.payload);
  return insert.Run();
}

absl::StatusOr<JobRow> SelectJob(SqliteConnection& connection, const std::string& id) {
  return SelectOne(connection, "id", id);
}

absl::StatusOr<JobRow> SelectJobByRequest(SqliteConnection& connection,
                                          const std::string& request_id) {
  if (request_id.empty()) return absl::NotFoundError("the empty request id names no job");
  // The partial index serves only when the statement repeats its condition.
  return SelectOne(connection, "request_id", request_id, " AND request_id <> ''");
}

absl::StatusOr<std::vector<JobRow>> SelectJobs(SqliteConnection& connection, int page_size,
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
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return jobs;
    jobs.push_back(ReadJob(statement));
  }
}

absl::StatusOr<std::vector<JobEvent>> SelectEvents(SqliteConnection& connection,
                                                   const std::string& job_id) {
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare("SELECT number, kind, payload FROM job_event"
                                           " WHERE job = ? ORDER BY number"));
  statement.Bind(job_id);
  std::vector<JobEvent> events;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return events;
    JobEvent event{.job_id = job_id};
    event.number = statement.Int64();
    event.kind = statement.Text();
    event.payload = statement.Blob();
    events.push_back(std::move(event));
  }
}

}  // namespace hone::store
