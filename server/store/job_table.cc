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
                      ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                      " ON CONFLICT (id) DO UPDATE SET request_id = excluded.request_id,"
                      " request = excluded.request, state = excluded.state, error = excluded.error,"
                      " summary = excluded.summary, created_unix_ms = excluded.created_unix_ms,"
                      " updated_unix_ms = excluded.updated_unix_ms, owner = excluded.owner,"
                      " priority = excluded.priority WHERE job.fence = excluded.fence RETURNING 1");
}

absl::Status UpsertJob(Connection& connection, const JobRow& job) {
  HONE_RETURN_IF_ERROR(CheckJob(job));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(UpsertJobSql()));
  BindJob(statement, job);
  const absl::StatusOr<bool> written = statement.Step();
  if (absl::IsAlreadyExists(written.status())) return SameRequestError(job);
  HONE_RETURN_IF_ERROR(written.status());
  return *written ? absl::OkStatus() : FencedOffError(job.id);
}

absl::Status InsertEvent(Connection& connection, const JobEvent& event) {
  {
    HONE_ASSIGN_OR_RETURN(
        Statement insert,
        connection.Prepare("INSERT INTO job_event (job, number, kind, payload)"
                           " SELECT id, ?2, ?3, ?4 FROM job WHERE id = ?1 AND fence = ?5 AND ?2 ="
                           " COALESCE((SELECT number + 1 FROM job_event WHERE job = ?1"
                           " ORDER BY number DESC LIMIT 1), 0) RETURNING 1"));
    insert.Bind(event.job_id).Bind(event.number).Bind(event.kind).BindBlob(event.payload);
    HONE_ASSIGN_OR_RETURN(const bool inserted, insert.Bind(event.fence).Step());
    if (inserted) return absl::OkStatus();
  }
  // The event was refused. Find out why.
  {
    HONE_ASSIGN_OR_RETURN(Statement job, connection.Prepare("SELECT fence FROM job WHERE id = ?"));
    job.Bind(event.job_id);
    HONE_ASSIGN_OR_RETURN(const bool found, job.Step());
    if (!found) return absl::NotFoundError(absl::StrCat("no job has id '", event.job_id, "'"));
    if (job.Int64() != event.fence) return FencedOffError(event.job_id);
  }
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

absl::Status CheckFence(Connection& connection, const JobFence& fence) {
  if (fence.job_id.empty()) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(Statement job,
                        connection.Prepare("SELECT 1 FROM job WHERE id = ? AND fence = ?"));
  job.Bind(fence.job_id).Bind(fence.fence);
  HONE_ASSIGN_OR_RETURN(const bool held, job.Step());
  if (!held) return FencedOffError(fence.job_id);
  if (fence.event < 0) return absl::OkStatus();
  HONE_ASSIGN_OR_RETURN(Statement event,
                        connection.Prepare("SELECT 1 FROM job_event WHERE job = ? AND number = ?"));
  event.Bind(fence.job_id).Bind(fence.event);
  HONE_ASSIGN_OR_RETURN(const bool logged, event.Step());
  return logged ? absl::OkStatus() : NoEventError(fence);
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

std::string ClaimableJobsSql() {
  return absl::StrCat("SELECT ", kJobColumns, " FROM job WHERE ", kUnfinished,
                      " AND lease_until_unix_ms < ? ORDER BY lease_until_unix_ms, id LIMIT ?");
}

absl::StatusOr<std::vector<JobRow>> ClaimJobRows(Connection& connection, const JobClaim& claim,
                                                 int limit) {
  std::vector<JobRow> jobs;
  {
    HONE_ASSIGN_OR_RETURN(Statement free, connection.Prepare(ClaimableJobsSql()));
    free.Bind(claim.now_unix_ms).Bind(int64_t{limit});
    HONE_RETURN_IF_ERROR(Connection::ForEachRow(free, [&] { jobs.push_back(ReadJob(free)); }));
  }
  for (JobRow& job : jobs) {
    job.replica = claim.replica;
    job.lease_until_unix_ms = claim.until_unix_ms;
    ++job.fence;
    HONE_ASSIGN_OR_RETURN(Statement take,
                          connection.Prepare("UPDATE job SET replica = ?, lease_until_unix_ms = ?,"
                                             " fence = ? WHERE id = ?"));
    take.Bind(job.replica).Bind(job.lease_until_unix_ms).Bind(job.fence).Bind(job.id);
    HONE_RETURN_IF_ERROR(take.Run());
  }
  return jobs;
}

absl::StatusOr<std::vector<std::string>> RenewJobRows(Connection& connection,
                                                      const JobClaim& claim) {
  HONE_ASSIGN_OR_RETURN(Statement renew, connection.Prepare(absl::StrCat(
                                             "UPDATE job SET lease_until_unix_ms = ? WHERE ",
                                             kUnfinished, " AND replica = ? RETURNING id")));
  renew.Bind(claim.until_unix_ms).Bind(claim.replica);
  std::vector<std::string> held;
  HONE_RETURN_IF_ERROR(Connection::ForEachRow(renew, [&] { held.push_back(renew.Text()); }));
  return held;
}

absl::Status ReleaseJobRow(Connection& connection, const std::string& id, int64_t fence) {
  HONE_RETURN_IF_ERROR(SelectOne(connection, "id", id).status());
  HONE_ASSIGN_OR_RETURN(Statement release,
                        connection.Prepare("UPDATE job SET replica = '', lease_until_unix_ms = 0"
                                           " WHERE id = ? AND fence = ? RETURNING 1"));
  HONE_ASSIGN_OR_RETURN(const bool released, release.Bind(id).Bind(fence).Step());
  return released ? absl::OkStatus() : FencedOffError(id);
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
