// Jobs, their events and models on PostgreSQL.

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/job_columns.h"
#include "server/store/model_columns.h"
#include "server/store/postgres_tables.h"

namespace hone::store::postgres {
namespace {

PostgresParams One(absl::string_view text) {
  PostgresParams params;
  params.Bind(text);
  return params;
}

absl::StatusOr<JobRow> SelectOne(PostgresConnection& connection, absl::string_view column,
                                 const std::string& value, absl::string_view condition = "") {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection.Query(absl::StrCat("SELECT ", kJobColumns, " FROM job WHERE ",
                                                      column, " = $1", condition),
                                         One(value)));
  if (!rows.Next()) {
    return absl::NotFoundError(absl::StrCat("no job has ", column, " '", value, "'"));
  }
  return ReadJob(rows);
}

absl::StatusOr<ModelRow> OneModel(absl::StatusOr<PostgresRows> rows, absl::Status missing) {
  HONE_RETURN_IF_ERROR(rows.status());
  if (!rows->Next()) return missing;
  ModelRow model = ReadModel(*rows);
  model.bytes = rows->Blob();
  return model;
}

}  // namespace

PostgresCommand UpsertJob(const JobRow& job) {
  PostgresCommand command{
      .sql = absl::StrCat(
          "INSERT INTO job (", kJobColumns,
          ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)"
          " ON CONFLICT (id) DO UPDATE SET request_id = excluded.request_id,"
          " request = excluded.request, state = excluded.state, error = excluded.error,"
          " summary = excluded.summary, created_unix_ms = excluded.created_unix_ms,"
          " updated_unix_ms = excluded.updated_unix_ms, owner = excluded.owner,"
          " priority = excluded.priority WHERE job.fence = excluded.fence RETURNING 1")};
  BindJob(command.params, job);
  return command;
}

PostgresCommand InsertEvent(const JobEvent& event) {
  PostgresCommand command{
      .sql =
          "WITH known AS (SELECT fence FROM job WHERE id = $1),"
          " next AS (SELECT COALESCE(MAX(number) + 1, 0) AS number FROM job_event WHERE job = $1),"
          " done AS (INSERT INTO job_event (job, number, kind, payload)"
          " SELECT $1, $2, $3, $4 FROM known, next"
          " WHERE known.fence = $5 AND next.number = $2 RETURNING 1)"
          " SELECT (SELECT COUNT(*) FROM known), (SELECT COUNT(*) FROM known WHERE fence = $5),"
          " (SELECT number FROM next), (SELECT COUNT(*) FROM done)"};
  command.params.Bind(absl::string_view(event.job_id)).Bind(event.number);
  command.params.Bind(absl::string_view(event.kind)).BindBlob(event.payload).Bind(event.fence);
  return command;
}

absl::Status CheckEventInserted(const JobEvent& event, PostgresRows& rows) {
  if (!rows.Next()) return absl::InternalError("an event's statement has no row");
  if (rows.Int64() == 0) {
    return absl::NotFoundError(absl::StrCat("no job has id '", event.job_id, "'"));
  }
  if (rows.Int64() == 0) return FencedOffError(event.job_id);
  const int64_t next = rows.Int64();
  return rows.Int64() == 0 ? EventNumberError(event, next) : absl::OkStatus();
}

absl::StatusOr<JobRow> SelectJob(PostgresConnection& connection, const std::string& id) {
  return SelectOne(connection, "id", id);
}

absl::StatusOr<JobRow> SelectJobByRequest(PostgresConnection& connection,
                                          const std::string& request_id) {
  if (request_id.empty()) return absl::NotFoundError("the empty request id names no job");
  return SelectOne(connection, "request_id", request_id, " AND request_id <> ''");
}

absl::StatusOr<std::vector<JobRow>> SelectJobs(PostgresConnection& connection, int page_size,
                                               const std::string& after_id) {
  if (page_size < 1 || page_size > 1000) {
    return absl::InvalidArgumentError(absl::StrCat("a page has 1 to 1000 jobs, not ", page_size));
  }
  PostgresParams params;
  params.Bind(int64_t{page_size});
  std::string where;
  if (!after_id.empty()) {
    HONE_ASSIGN_OR_RETURN(const JobRow last, SelectOne(connection, "id", after_id));
    params.Bind(last.created_unix_ms).Bind(absl::string_view(after_id));
    where = " WHERE (created_unix_ms, id) < ($2, $3)";
  }
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection.Query(absl::StrCat("SELECT ", kJobColumns, " FROM job", where,
                                                      " ORDER BY created_unix_ms DESC, id DESC"
                                                      " LIMIT $1"),
                                         params));
  std::vector<JobRow> jobs;
  while (rows.Next()) jobs.push_back(ReadJob(rows));
  return jobs;
}

absl::StatusOr<std::vector<JobEvent>> SelectEvents(PostgresConnection& connection,
                                                   const std::string& job_id) {
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection.Query("SELECT number, kind, payload FROM job_event WHERE job = $1 ORDER BY number",
                       One(job_id)));
  std::vector<JobEvent> events;
  while (rows.Next()) {
    JobEvent event{.job_id = job_id};
    event.number = rows.Int64();
    event.kind = rows.Text();
    event.payload = rows.Blob();
    events.push_back(std::move(event));
  }
  return events;
}

absl::StatusOr<int64_t> NextJobNumber(PostgresConnection& connection) {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows, connection.Query("SELECT nextval('job_number')"));
  return rows.Next() ? rows.Int64() : 0;
}

absl::StatusOr<std::vector<JobRow>> ClaimJobs(PostgresConnection& connection, const JobClaim& claim,
                                              int limit) {
  PostgresParams params;
  params.Bind(absl::string_view(claim.replica)).Bind(claim.until_unix_ms).Bind(claim.now_unix_ms);
  params.Bind(int64_t{limit});
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection.Query(absl::StrCat("UPDATE job SET replica = $1, lease_until_unix_ms = $2,"
                                    " fence = fence + 1 WHERE id IN (SELECT id FROM job WHERE ",
                                    kUnfinished,
                                    " AND lease_until_unix_ms < $3"
                                    " ORDER BY lease_until_unix_ms, id LIMIT $4) RETURNING ",
                                    kJobColumns),
                       params));
  std::vector<JobRow> jobs;
  while (rows.Next()) jobs.push_back(ReadJob(rows));
  return jobs;
}

absl::StatusOr<std::vector<std::string>> RenewJobs(PostgresConnection& connection,
                                                   const JobClaim& claim) {
  PostgresParams params = One(claim.replica);
  params.Bind(claim.until_unix_ms);
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection.Query(absl::StrCat("UPDATE job SET lease_until_unix_ms = $2 WHERE ", kUnfinished,
                                    " AND replica = $1 RETURNING id"),
                       params));
  std::vector<std::string> held;
  while (rows.Next()) held.push_back(rows.Text());
  return held;
}

absl::Status ReleaseJob(PostgresConnection& connection, const std::string& id, int64_t fence) {
  HONE_RETURN_IF_ERROR(SelectOne(connection, "id", id).status());
  PostgresParams params = One(id);
  params.Bind(fence);
  HONE_ASSIGN_OR_RETURN(const PostgresRows rows,
                        connection.Query("UPDATE job SET replica = '', lease_until_unix_ms = 0"
                                         " WHERE id = $1 AND fence = $2",
                                         params));
  return rows.changed() == 0 ? FencedOffError(id) : absl::OkStatus();
}

absl::Status CheckFence(PostgresConnection& connection, const JobFence& fence) {
  if (fence.job_id.empty()) return absl::OkStatus();
  PostgresParams params = One(fence.job_id);
  params.Bind(fence.fence);
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection.Query("SELECT 1 FROM job WHERE id = $1 AND fence = $2", params));
  return rows.Next() ? absl::OkStatus() : FencedOffError(fence.job_id);
}

absl::StatusOr<int64_t> InsertModel(PostgresConnection& connection, const ModelRow& model) {
  HONE_RETURN_IF_ERROR(CheckModel(model));
  PostgresParams params;
  BindModelKey(params, model.key);
  params.Bind(model.version).Bind(model.records).Bind(model.workloads);
  params.Bind(model.created_unix_ms).Bind(absl::string_view(model.metrics)).BindBlob(model.bytes);
  HONE_ASSIGN_OR_RETURN(
      PostgresRows inserted,
      connection.Query("INSERT INTO model (name, feature_set, target, scope, version, records,"
                       " workloads, created_unix_ms, metrics, bytes)"
                       " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) RETURNING id",
                       params));
  inserted.Next();
  PostgresParams key;
  BindModelKey(key, model.key);
  key.Bind(int64_t{Store::kModelsKept});
  constexpr char kOfKey[] = "name = $1 AND feature_set = $2 AND target = $3 AND scope = $4";
  HONE_RETURN_IF_ERROR(connection
                           .Query(absl::StrCat("DELETE FROM model WHERE ", kOfKey,
                                               " AND id <= (SELECT id FROM model WHERE ", kOfKey,
                                               " ORDER BY id DESC LIMIT 1 OFFSET $5)"),
                                  key)
                           .status());
  return inserted.Int64();
}

absl::StatusOr<ModelRow> SelectModel(PostgresConnection& connection, const ModelKey& key) {
  PostgresParams params;
  BindModelKey(params, key);
  return OneModel(
      connection.Query(absl::StrCat("SELECT ", kModelColumns,
                                    ", bytes FROM model WHERE name = $1 AND feature_set = $2"
                                    " AND target = $3 AND scope = $4 ORDER BY id DESC LIMIT 1"),
                       params),
      NoModelError(key));
}

absl::StatusOr<ModelRow> SelectModelById(PostgresConnection& connection, int64_t id) {
  return OneModel(
      connection.Query(absl::StrCat("SELECT ", kModelColumns, ", bytes FROM model WHERE id = $1"),
                       PostgresParams().Bind(id)),
      absl::NotFoundError(absl::StrCat("the store has no model with id ", id)));
}

absl::StatusOr<std::vector<ModelRow>> SelectModels(PostgresConnection& connection,
                                                   const std::string& name,
                                                   const std::string& target) {
  PostgresParams params = One(name);
  params.Bind(absl::string_view(target));
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection.Query(absl::StrCat("SELECT ", kModelColumns,
                                    " FROM model WHERE id IN (SELECT MAX(id) FROM model"
                                    " GROUP BY name, feature_set, target, scope)"
                                    " AND ($1 = '' OR name = $1) AND ($2 = '' OR target = $2)"
                                    " ORDER BY id DESC"),
                       params));
  std::vector<ModelRow> models;
  while (rows.Next()) models.push_back(ReadModel(rows));
  return models;
}

}  // namespace hone::store::postgres
