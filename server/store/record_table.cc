#include "server/store/record_table.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/blob_codec.h"
#include "server/store/record_columns.h"

namespace hone::store {
namespace {

constexpr char kOkName[] = "ok";

// "?, ?, ?"
std::string Parameters(int count) {
  std::string text = "?";
  for (int i = 1; i < count; ++i) text += ", ?";
  return text;
}

absl::StatusOr<int64_t> EnvironmentId(SqliteConnection& connection,
                                      const record::Environment& environment) {
  HONE_ASSIGN_OR_RETURN(
      Statement find,
      connection.Prepare("SELECT id FROM environment WHERE cpu = ? AND isa = ? AND cores = ? AND"
                         " os = ? AND governor = ? AND compiler = ? AND codegen_version = ? AND"
                         " hone_version = ?"));
  BindEnvironment(find, environment);
  HONE_ASSIGN_OR_RETURN(const bool found, find.Step());
  if (found) return find.Int64();
  HONE_ASSIGN_OR_RETURN(
      Statement insert,
      connection.Prepare("INSERT INTO environment (cpu, isa, cores, os, governor, compiler,"
                         " codegen_version, hone_version) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  BindEnvironment(insert, environment);
  HONE_RETURN_IF_ERROR(insert.Run());
  return connection.LastInsertId();
}

}  // namespace

absl::Status InsertRecord(SqliteConnection& connection, record::Record& record) {
  HONE_RETURN_IF_ERROR(CheckRecord(record));
  HONE_ASSIGN_OR_RETURN(const int64_t environment, EnvironmentId(connection, record.environment));
  static const auto* const sql =
      new std::string(absl::StrCat("INSERT INTO record (", kRecordInsertColumns, ") VALUES (",
                                   Parameters(kRecordInsertColumnCount + 1), ")"));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(*sql));
  BindRecord(statement, record);
  statement.Bind(environment);
  HONE_RETURN_IF_ERROR(statement.Run());
  record.id = connection.LastInsertId();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> FindSameRecord(SqliteConnection& connection,
                                                      const record::Record& record) {
  HONE_ASSIGN_OR_RETURN(Statement same, connection.Prepare(SameRecordSql()));
  same.Bind(record.created_unix_ms).Bind(record.workload_digest).Bind(record.target);
  same.Bind(record.tolerance).Bind(record.policy.name).Bind(record.policy.cache);
  same.Bind(int64_t{record.policy.threads}).Bind(record.candidate.space_digest);
  same.BindBlob(EncodeDecisions(record.candidate.decisions)).Bind(record.trial);
  same.Bind(record::OutcomeName(record.result.outcome)).Bind(record.result.latency_ns);
  HONE_ASSIGN_OR_RETURN(const bool found, same.Step());
  if (!found) return std::nullopt;
  return same.Int64();
}

std::string SameRecordSql() {
  // IS, because a latency that is not a number is NULL.
  return "SELECT id FROM record WHERE created_unix_ms = ? AND +workload = ? AND +target = ?"
         " AND tolerance = ? AND policy_name = ? AND policy_cache = ? AND policy_threads = ?"
         " AND space = ? AND decisions = ? AND trial = ? AND +outcome = ? AND latency_ns IS ?"
         " LIMIT 1";
}

std::string QuerySql(const RecordQuery& query) {
  // Without statistics SQLite cannot know which index is the narrowest: the unary + keeps it from
  // all but one. Each index ends with the id, so a page needs no sorting.
  std::string where;
  bool indexed = query.best_only;
  const auto add = [&](absl::string_view column, absl::string_view condition) {
    absl::StrAppend(&where, " AND ", indexed ? "+" : "", "r.", column, condition);
  };
  const auto filter = [&](absl::string_view column, bool set) {
    if (!set) return;
    add(column, " = ?");
    indexed = true;
  };
  filter("workload", !query.workload_digest.empty());
  filter("job", !query.job_id.empty());
  filter("op", !query.op.empty());
  if (!query.outcome.empty()) {
    add("outcome", " = ?");
    // Failures have a partial index, which serves when the statement repeats its condition.
    if (!indexed && query.outcome != kOkName) {
      absl::StrAppend(&where, " AND r.outcome <> 'ok'");
      indexed = true;
    }
  }
  if (query.quarantine == QuarantineFilter::kOnly) {
    add("quarantined", " = 1");
    indexed = true;
  }
  if (query.quarantine == QuarantineFilter::kNone) {
    absl::StrAppend(&where, " AND +r.quarantined = 0");
  }
  filter("target", !query.target.empty());
  // Ids grow with time, nearly: imports come later than they were measured. The first page of a
  // span of time begins at its first id, which the index of times knows without reading records.
  const bool by_time = !indexed && query.since_unix_ms != 0 && query.after_id == 0;
  if (query.since_unix_ms != 0) absl::StrAppend(&where, " AND +r.created_unix_ms >= ?");
  if (query.until_unix_ms != 0) absl::StrAppend(&where, " AND +r.created_unix_ms < ?");
  if (query.before_id != 0) absl::StrAppend(&where, " AND r.id < ?");
  if (query.best_only) {
    absl::StrAppend(&where,
                    " AND r.id IN (SELECT record FROM best WHERE replaced_unix_ms IS NULL)");
  }
  return absl::StrCat(
      "SELECT ", kRecordColumns,
      " FROM record r CROSS JOIN environment e ON e.id = r.environment WHERE r.id > ",
      by_time ? "MAX(?, IFNULL((SELECT MIN(+id) - 1 FROM record INDEXED BY record_by_time"
                " WHERE created_unix_ms >= ?), 9223372036854775807))"
              : "?",
      where, " ORDER BY r.id", query.newest_first ? " DESC" : "", " LIMIT ?");
}

absl::StatusOr<std::vector<record::Record>> QueryRecords(SqliteConnection& connection,
                                                         const RecordQuery& query) {
  HONE_RETURN_IF_ERROR(CheckQuery(query));
  const std::string sql = QuerySql(query);
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(sql));
  statement.Bind(query.after_id);
  if (absl::StrContains(sql, "record_by_time")) statement.Bind(query.since_unix_ms);
  for (const std::string* text :
       {&query.workload_digest, &query.job_id, &query.op, &query.outcome, &query.target}) {
    if (!text->empty()) statement.Bind(*text);
  }
  if (query.since_unix_ms != 0) statement.Bind(query.since_unix_ms);
  if (query.until_unix_ms != 0) statement.Bind(query.until_unix_ms);
  if (query.before_id != 0) statement.Bind(query.before_id);
  statement.Bind(int64_t{query.page_size});
  std::vector<record::Record> records;
  while (true) {
    HONE_ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return records;
    HONE_ASSIGN_OR_RETURN(record::Record record, ReadRecord(statement));
    records.push_back(std::move(record));
  }
}

absl::Status QuarantineRecords(SqliteConnection& connection, const std::string& workload_digest,
                               const std::string& target, const record::Candidate& candidate,
                               int64_t last_record, const std::string& reason,
                               int64_t now_unix_ms) {
  constexpr char kWhich[] =
      "workload = ? AND +target = ? AND +space = ? AND decisions = ? AND id <= ?";
  const auto bind = [&](Statement& statement) {
    statement.Bind(workload_digest).Bind(target).Bind(candidate.space_digest);
    statement.BindBlob(EncodeDecisions(candidate.decisions)).Bind(last_record);
  };
  HONE_ASSIGN_OR_RETURN(
      Statement mark,
      connection.Prepare(absl::StrCat("UPDATE record SET quarantined = 1, quarantine_reason = ?"
                                      " WHERE +quarantined = 0 AND ",
                                      kWhich)));
  mark.Bind(reason);
  bind(mark);
  HONE_RETURN_IF_ERROR(mark.Run());
  HONE_ASSIGN_OR_RETURN(
      Statement withdraw,
      connection.Prepare(absl::StrCat("UPDATE best SET replaced_unix_ms = ? WHERE replaced_unix_ms"
                                      " IS NULL AND record IN (SELECT id FROM record WHERE ",
                                      kWhich, ")")));
  withdraw.Bind(now_unix_ms);
  bind(withdraw);
  return withdraw.Run();
}

}  // namespace hone::store
