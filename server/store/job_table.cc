#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

JobRow ReadJob(Statement& row) {
  JobRow job;
  job.id = row.Text();
  job.request_id = row.Text();
  job.request = row.Blob();
  job.state = row.Text();
  job.error = row.Raw();
  job.summary = row.Blob();
  job.created_unix_ms = row.Int64();
  job.updated_unix_ms = row.Int64();
  job.owner = row.Text();
  job.priority = row.Text();
  return job;
}

absl::StatusOr<JobRow> SelectOne(Connection& connection, absl::string_view column,
                                 const std::string& value, absl::string_view condition = "") {
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare(absl::StrCat("SELECT ", kJobColumns, " FROM job WHERE ",
                                                        column, " = ?", condition),
                                           value));
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::NotFoundError(absl::StrCat("no job has ", column, " '", value, "'"));
  return ReadJob(statement);
}

absl::Status UpsertJob(Connection& connection, const JobRow& job) {
  HONE_RETURN_IF_ERROR(CheckJob(job));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(UpsertSql("job", kJobColumns)));
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
  HONE_ASSIGN_OR_RETURN(Statement last,
                        connection.Prepare("SELECT number + 1 FROM job_event WHERE job = ?"
                                           " ORDER BY number DESC LIMIT 1"));
  HONE_ASSIGN_OR_RETURN(const bool any, last.Bind(event.job_id).Step());
  return EventNumberError(event, any ? last.Int64() : 0);
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
  return Connection::ReadAll(std::move(statement), ReadJob);
}

}  // namespace

absl::Status CheckStep(Connection& connection, const JobStep& step) {
  if (step.event < 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(const bool logged,
                        connection.Has("SELECT 1 FROM job_event WHERE job = ? AND number = ?",
                                       step.job_id, step.event));
  return logged ? absl::OkStatus() : NoEventError(step);
}

std::string UnfinishedJobsSql() {
  return absl::StrCat("SELECT ", kJobColumns, " FROM job WHERE ", kUnfinished, " ORDER BY id");
}

absl::StatusOr<std::vector<JobRow>> SelectUnfinishedJobs(Connection& connection) {
  return Connection::ReadAll(connection.Prepare(UnfinishedJobsSql()), ReadJob);
}

void Store::PutJob(JobRow job, Done done, WhenFull when_full) {
  const size_t bytes = kRowBytes + job.request.size() + job.summary.size();
  Write([job = std::move(job)](Connection& c) { return UpsertJob(c, job); }, std::move(done), bytes,
        when_full);
}

absl::StatusOr<JobRow> Store::GetJob(const std::string& id) {
  return Get([&](Connection& c) { return SelectOne(c, "id", id); });
}

absl::StatusOr<JobRow> Store::GetJobByRequest(const std::string& request_id) {
  if (request_id.empty()) return absl::NotFoundError("the empty request id names no job");
  // SQLite uses the partial index only if the statement repeats its condition.
  return Get([&](Connection& c) {
    return SelectOne(c, "request_id", request_id, " AND request_id <> ''");
  });
}

absl::StatusOr<std::vector<JobRow>> Store::ListJobs(int page_size, const std::string& after_id) {
  return Get([&](Connection& c) { return SelectJobs(c, page_size, after_id); });
}

absl::StatusOr<std::vector<JobRow>> Store::UnfinishedJobs() {
  return Get([](Connection& c) { return SelectUnfinishedJobs(c); });
}

void Store::AppendEvent(JobEvent event, Done done) {
  const size_t bytes = kRowBytes + event.payload.size();
  Write([event = std::move(event)](Connection& c) { return InsertEvent(c, event); },
        std::move(done), bytes, WhenFull::kWait);
}

absl::StatusOr<std::vector<JobEvent>> Store::Events(const std::string& job_id) {
  return Get([&](Connection& c) {
    auto events = c.Prepare(
        "SELECT number, kind, payload FROM job_event WHERE job = ? ORDER BY number", job_id);
    return Connection::ReadAll(std::move(events), [&](Statement& row) {
      JobEvent event{.job_id = job_id};
      event.number = row.Int64();
      event.kind = row.Text();
      event.payload = row.Blob();
      return event;
    });
  });
}

}  // namespace hone::store
