#include "server/store/record_table.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/blob_codec.h"

namespace hone::store {
namespace {

constexpr char kInsertRecord[] =
    "INSERT INTO record (workload, op, target, tolerance, policy_name, policy_cache,"
    " policy_threads, created_unix_ms, is_default, quarantined, environment, job, trial, space,"
    " decisions, outcome, latency_ns, dispersion, reference_drift, stopped_early, max_error,"
    " compile_ms, link_ms, code_bytes, spills, loads_per_fma, workspace_bytes, program, artifact,"
    " samples_ns, detail) VALUES"
    " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
    "?)";

absl::Status Check(const record::Record& record) {
  if (record.workload_digest.empty() || record.target.empty()) {
    return absl::InvalidArgumentError("a record needs a workload digest and a target");
  }
  if (!std::isfinite(record.tolerance) || record.tolerance < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record's tolerance is a finite number from 0, not ", record.tolerance));
  }
  const double latency_ns = record.result.latency_ns;
  if (record.result.outcome == record::Outcome::kOk &&
      !(latency_ns > 0 && std::isfinite(latency_ns))) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record with outcome ok needs a positive latency, not ", latency_ns, " ns"));
  }
  return absl::OkStatus();
}

void BindEnvironment(Statement& statement, const record::Environment& e) {
  statement.Bind(e.cpu).Bind(e.isa).Bind(int64_t{e.cores}).Bind(e.os).Bind(e.governor);
  statement.Bind(e.compiler).Bind(int64_t{e.codegen_version}).Bind(e.hone_version);
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

const char kRecordColumns[] =
    "r.id, r.workload, r.op, r.target, r.tolerance, r.policy_name, r.policy_cache,"
    " r.policy_threads, r.created_unix_ms, r.is_default, r.quarantined, r.job, r.trial, r.space,"
    " r.decisions, r.outcome, r.latency_ns, r.dispersion, r.reference_drift, r.stopped_early,"
    " r.max_error, r.compile_ms, r.link_ms, r.code_bytes, r.spills, r.loads_per_fma,"
    " r.workspace_bytes, r.program, r.artifact, r.samples_ns, r.detail,"
    " e.cpu, e.isa, e.cores, e.os, e.governor, e.compiler, e.codegen_version, e.hone_version";

absl::Status InsertRecord(SqliteConnection& connection, record::Record& record) {
  HONE_RETURN_IF_ERROR(Check(record));
  HONE_ASSIGN_OR_RETURN(const int64_t environment, EnvironmentId(connection, record.environment));
  HONE_ASSIGN_OR_RETURN(Statement s, connection.Prepare(kInsertRecord));
  const record::MeasureResult& result = record.result;
  const record::BuildFacts& facts = result.facts;
  s.Bind(record.workload_digest).Bind(record.op).Bind(record.target).Bind(record.tolerance);
  s.Bind(record.policy.name).Bind(record.policy.cache).Bind(int64_t{record.policy.threads});
  s.Bind(record.created_unix_ms).Bind(int64_t{record.is_default});
  s.Bind(int64_t{record.quarantined}).Bind(environment).Bind(record.job_id).Bind(record.trial);
  s.Bind(record.candidate.space_digest);
  s.BindBlob(EncodeDecisions(record.candidate.decisions));
  s.Bind(record::OutcomeName(result.outcome)).Bind(result.latency_ns).Bind(result.dispersion);
  s.Bind(result.reference_drift).Bind(int64_t{result.stopped_early}).Bind(result.max_error);
  s.Bind(facts.compile_ms).Bind(facts.link_ms).Bind(facts.code_bytes).Bind(facts.spills);
  s.Bind(facts.loads_per_fma).Bind(facts.workspace_bytes).Bind(facts.program_digest);
  s.Bind(result.artifact_digest).BindBlob(EncodeSamples(result.samples_ns)).Bind(result.detail);
  HONE_RETURN_IF_ERROR(s.Run());
  record.id = connection.LastInsertId();
  return absl::OkStatus();
}

absl::StatusOr<record::Record> ReadRecord(Statement& row) {
  record::Record record;
  record.id = row.Int64();
  record.workload_digest = row.Text();
  record.op = row.Text();
  record.target = row.Text();
  record.tolerance = row.Double();
  record.policy.name = row.Text();
  record.policy.cache = row.Text();
  record.policy.threads = static_cast<int>(row.Int64());
  record.created_unix_ms = row.Int64();
  record.is_default = row.Bool();
  record.quarantined = row.Bool();
  record.job_id = row.Text();
  record.trial = row.Int64();
  record.candidate.space_digest = row.Text();
  HONE_ASSIGN_OR_RETURN(record.candidate.decisions, DecodeDecisions(row.Blob()));
  record::MeasureResult& result = record.result;
  const std::string outcome = row.Text();
  const absl::StatusOr<record::Outcome> known = record::OutcomeFromName(outcome);
  if (!known.ok()) {
    return absl::DataLossError(
        absl::StrCat("record ", record.id, " has an unknown outcome '", outcome, "'"));
  }
  result.outcome = *known;
  result.latency_ns = row.Double();
  result.dispersion = row.Double();
  result.reference_drift = row.Double();
  result.stopped_early = row.Bool();
  result.max_error = row.Double();
  record::BuildFacts& facts = result.facts;
  facts.compile_ms = row.Double();
  facts.link_ms = row.Double();
  facts.code_bytes = row.Int64();
  facts.spills = row.Int64();
  facts.loads_per_fma = row.Double();
  facts.workspace_bytes = row.Int64();
  facts.program_digest = row.Text();
  result.artifact_digest = row.Text();
  HONE_ASSIGN_OR_RETURN(result.samples_ns, DecodeSamples(row.Blob()));
  result.detail = row.Text();
  record::Environment& environment = record.environment;
  environment.cpu = row.Text();
  environment.isa = row.Text();
  environment.cores = static_cast<int>(row.Int64());
  environment.os = row.Text();
  environment.governor = row.Text();
  environment.compiler = row.Text();
  environment.codegen_version = static_cast<int>(row.Int64());
  environment.hone_version = row.Text();
  return record;
}

std::string QuerySql(const RecordQuery& query) {
  std::string sql = absl::StrCat("SELECT ", kRecordColumns,
                                 " FROM record r CROSS JOIN environment e ON e.id = r.environment"
                                 " WHERE r.id > ?");
  // Without statistics SQLite cannot know which index is the narrowest: the unary + keeps it from
  // all but one. Each index ends with the id, so a page needs no sorting.
  bool indexed = query.best_only;
  const auto filter = [&](absl::string_view column, bool set) {
    if (!set) return;
    absl::StrAppend(&sql, " AND ", indexed ? "+" : "", "r.", column, " = ?");
    indexed = true;
  };
  filter("workload", !query.workload_digest.empty());
  filter("op", !query.op.empty());
  filter("target", !query.target.empty());
  if (query.since_unix_ms != 0) absl::StrAppend(&sql, " AND r.created_unix_ms >= ?");
  if (query.before_id != 0) absl::StrAppend(&sql, " AND r.id < ?");
  if (query.best_only) {
    absl::StrAppend(&sql, " AND r.id IN (SELECT record FROM best WHERE replaced_unix_ms IS NULL)");
  }
  absl::StrAppend(&sql, " ORDER BY r.id", query.newest_first ? " DESC" : "", " LIMIT ?");
  return sql;
}

absl::StatusOr<std::vector<record::Record>> QueryRecords(SqliteConnection& connection,
                                                         const RecordQuery& query) {
  if (query.page_size < 1 || query.page_size > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("a page has 1 to 1000 records, not ", query.page_size));
  }
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(QuerySql(query)));
  statement.Bind(query.after_id);
  if (!query.workload_digest.empty()) statement.Bind(query.workload_digest);
  if (!query.op.empty()) statement.Bind(query.op);
  if (!query.target.empty()) statement.Bind(query.target);
  if (query.since_unix_ms != 0) statement.Bind(query.since_unix_ms);
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
                               int64_t last_record, int64_t now_unix_ms) {
  constexpr char kWhich[] =
      "workload = ? AND +target = ? AND +space = ? AND decisions = ? AND id <= ?";
  const auto bind = [&](Statement& statement) {
    statement.Bind(workload_digest).Bind(target).Bind(candidate.space_digest);
    statement.BindBlob(EncodeDecisions(candidate.decisions)).Bind(last_record);
  };
  HONE_ASSIGN_OR_RETURN(Statement mark, connection.Prepare(absl::StrCat(
                                            "UPDATE record SET quarantined = 1 WHERE ", kWhich)));
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
