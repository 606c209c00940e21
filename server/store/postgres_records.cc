// Texts, artifacts, records and bests on PostgreSQL.

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/best_check.h"
#include "server/store/import_batch.h"
#include "server/store/job_columns.h"
#include "server/store/postgres_tables.h"
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
  constexpr int kFirst = kRecordInsertColumnCount + 1;  // of the environment's parameters
  const std::string environment = Parameters(kFirst, kFirst + kEnvironmentColumnCount - 1);
  constexpr int kFence = kFirst + kEnvironmentColumnCount;  // the job, its fence, its event
  const std::string job = absl::StrCat("$", kFence);
  const std::string event = absl::StrCat("CAST($", kFence + 2, " AS bigint)");
  const std::string same = absl::StrCat("SELECT id FROM environment WHERE (", kEnvironmentColumns,
                                        ") = (", environment, ")");
  // Of no job, or of one whose claim holds; and then of no event, or of one that is stored.
  return absl::StrCat(
      "WITH known AS (", same, "), held AS (SELECT 1 WHERE ", job,
      " = '' OR EXISTS (SELECT 1 FROM job WHERE id = ", job, " AND fence = $", kFence + 1,
      ")), logged AS (SELECT 1 WHERE ", job, " = '' OR ", event,
      " < 0 OR EXISTS (SELECT 1 FROM job_event WHERE job = ", job, " AND number = ", event,
      ")), added AS (INSERT INTO environment (", kEnvironmentColumns, ") SELECT ", environment,
      " FROM held, logged WHERE NOT EXISTS (SELECT 1 FROM known) RETURNING id), done AS (INSERT "
      "INTO record (",
      kRecordInsertColumns, ") SELECT ", Parameters(1, kRecordInsertColumnCount),
      ", COALESCE((SELECT id FROM known), (SELECT id FROM added)) FROM held, logged RETURNING id)"
      " SELECT (SELECT COUNT(*) FROM held), COALESCE((SELECT id FROM done), 0)");
}

absl::StatusOr<std::string> SelectBlob(PostgresConnection& connection, const std::string& sql,
                                       const std::string& digest, absl::string_view what) {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection.Query(sql, PostgresParams().Bind(absl::string_view(digest))));
  if (rows.Next()) return rows.Blob();
  return absl::NotFoundError(absl::StrCat("the store has no ", what, " ", digest));
}

absl::StatusOr<bool> Exists(PostgresConnection& connection, const std::string& sql,
                            const std::string& digest) {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection.Query(sql, PostgresParams().Bind(absl::string_view(digest))));
  return rows.Next();
}

absl::StatusOr<bool> HasText(PostgresConnection& connection, const std::string& digest) {
  return Exists(connection, "SELECT 1 FROM text WHERE digest = $1", digest);
}

absl::StatusOr<record::Record> SelectRecord(PostgresConnection& connection, int64_t id) {
  static const auto* const sql = new std::string(
      absl::StrCat("SELECT ", kRecordColumns,
                   " FROM record r JOIN environment e ON e.id = r.environment WHERE r.id = $1"));
  HONE_ASSIGN_OR_RETURN(PostgresRows rows, connection.Query(*sql, PostgresParams().Bind(id)));
  if (!rows.Next()) return absl::NotFoundError(absl::StrCat("there is no record ", id));
  return ReadRecord(rows);
}

// The id of a record of the same measurement.
absl::StatusOr<std::optional<int64_t>> FindSameRecord(PostgresConnection& connection,
                                                      const record::Record& record) {
  PostgresParams params;
  params.Bind(record.created_unix_ms).Bind(absl::string_view(record.workload_digest));
  params.Bind(absl::string_view(record.target)).Bind(record.tolerance);
  params.Bind(absl::string_view(record.policy.name)).Bind(absl::string_view(record.policy.cache));
  params.Bind(int64_t{record.policy.threads});
  params.Bind(absl::string_view(record.candidate.space_digest));
  params.BindBlob(EncodeDecisions(record.candidate.decisions)).Bind(record.trial);
  params.Bind(record::OutcomeName(record.result.outcome)).Bind(record.result.latency_ns);
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection.Query("SELECT id FROM record WHERE created_unix_ms = $1 AND workload = $2"
                       " AND target = $3 AND tolerance = $4 AND policy_name = $5"
                       " AND policy_cache = $6 AND policy_threads = $7 AND space = $8"
                       " AND decisions = $9 AND trial = $10 AND outcome = $11"
                       " AND latency_ns = $12 LIMIT 1",
                       params));
  if (!rows.Next()) return std::nullopt;
  return rows.Int64();
}

}  // namespace

PostgresCommand InsertText(const std::string& digest, const std::string& text,
                           int64_t now_unix_ms) {
  PostgresCommand command{.sql =
                              "INSERT INTO text (digest, text, put_unix_ms) VALUES ($1, $2, $3)"
                              " ON CONFLICT (digest) DO UPDATE SET put_unix_ms ="
                              " GREATEST(text.put_unix_ms, excluded.put_unix_ms)"};
  command.params.Bind(absl::string_view(digest)).Bind(absl::string_view(text)).Bind(now_unix_ms);
  return command;
}

PostgresCommand InsertArtifact(const std::string& digest, const std::string& bytes,
                               int64_t now_unix_ms) {
  PostgresCommand command{
      .sql =
          "INSERT INTO artifact (digest, bytes, put_unix_ms) VALUES ($1, $2, $3)"
          " ON CONFLICT (digest) DO UPDATE SET put_unix_ms ="
          " GREATEST(artifact.put_unix_ms, excluded.put_unix_ms)"};
  command.params.Bind(absl::string_view(digest)).BindBlob(bytes).Bind(now_unix_ms);
  return command;
}

PostgresCommand InsertRecord(const record::Record& record, const JobFence& fence) {
  static const auto* const sql = new std::string(InsertRecordSql());
  PostgresCommand command{.sql = *sql};
  BindRecord(command.params, record);
  BindEnvironment(command.params, record.environment);
  command.params.Bind(absl::string_view(fence.job_id)).Bind(fence.fence).Bind(fence.event);
  return command;
}

absl::StatusOr<int64_t> InsertedRecord(const JobFence& fence, PostgresRows& rows) {
  if (!rows.Next()) return absl::InternalError("a record's statement has no row");
  if (rows.Int64() == 0) return FencedOffError(fence.job_id);
  const int64_t id = rows.Int64();
  if (id == 0) return NoEventError(fence);
  return id;
}

absl::StatusOr<std::string> SelectText(PostgresConnection& connection, const std::string& digest) {
  return SelectBlob(connection, "SELECT text FROM text WHERE digest = $1", digest, "text");
}

absl::StatusOr<std::string> SelectArtifact(PostgresConnection& connection,
                                           const std::string& digest) {
  return SelectBlob(connection, "SELECT bytes FROM artifact WHERE digest = $1", digest, "artifact");
}

absl::StatusOr<std::string> SelectIdentity(PostgresConnection& connection) {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows, connection.Query("SELECT id FROM identity"));
  if (!rows.Next()) return absl::DataLossError("the store has no name");
  return rows.Text();
}

absl::StatusOr<std::vector<record::Record>> QueryRecords(PostgresConnection& connection,
                                                         const RecordQuery& query) {
  HONE_RETURN_IF_ERROR(CheckQuery(query));
  PostgresParams params;
  std::string where;
  const auto add = [&](absl::string_view condition) {  // ends with the parameter's place
    absl::StrAppend(&where, where.empty() ? " WHERE " : " AND ", condition, "$", params.count());
  };
  add((params.Bind(query.after_id), "r.id > "));
  for (const auto& [condition, text] :
       {std::pair("r.workload = ", &query.workload_digest), std::pair("r.job = ", &query.job_id),
        std::pair("r.op = ", &query.op), std::pair("r.outcome = ", &query.outcome),
        std::pair("r.target = ", &query.target)}) {
    if (!text->empty()) add((params.Bind(absl::string_view(*text)), condition));
  }
  // Failures have a partial index, which serves when the statement repeats its condition.
  if (!query.outcome.empty() && query.outcome != "ok") where += " AND r.outcome <> 'ok'";
  if (query.quarantine == QuarantineFilter::kOnly) where += " AND r.quarantined";
  if (query.quarantine == QuarantineFilter::kNone) where += " AND NOT r.quarantined";
  if (query.since_unix_ms != 0) {
    add((params.Bind(query.since_unix_ms), "r.created_unix_ms >= "));
  }
  if (query.until_unix_ms != 0) add((params.Bind(query.until_unix_ms), "r.created_unix_ms < "));
  if (query.before_id != 0) add((params.Bind(query.before_id), "r.id < "));
  if (query.best_only) {
    where += " AND r.id IN (SELECT record FROM best WHERE replaced_unix_ms IS NULL)";
  }
  params.Bind(int64_t{query.page_size});
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection.Query(absl::StrCat("SELECT ", kRecordColumns,
                                    " FROM record r JOIN environment e ON e.id = r.environment",
                                    where, " ORDER BY r.id", query.newest_first ? " DESC" : "",
                                    " LIMIT $", params.count()),
                       params));
  std::vector<record::Record> records;
  while (rows.Next()) {
    HONE_ASSIGN_OR_RETURN(record::Record record, ReadRecord(rows));
    records.push_back(std::move(record));
  }
  return records;
}

absl::Status QuarantineRecords(PostgresConnection& connection, const std::string& workload_digest,
                               const std::string& target, const record::Candidate& candidate,
                               int64_t last_record, const std::string& reason,
                               int64_t now_unix_ms) {
  constexpr char kWhich[] =
      "workload = $1 AND target = $2 AND space = $3 AND decisions = $4 AND id <= $5";
  PostgresParams which;
  which.Bind(absl::string_view(workload_digest)).Bind(absl::string_view(target));
  which.Bind(absl::string_view(candidate.space_digest));
  which.BindBlob(EncodeDecisions(candidate.decisions)).Bind(last_record);
  PostgresParams mark = which;
  mark.Bind(absl::string_view(reason));
  HONE_RETURN_IF_ERROR(
      connection
          .Query(absl::StrCat("UPDATE record SET quarantined = true, quarantine_reason = $6"
                              " WHERE NOT quarantined AND ",
                              kWhich),
                 mark)
          .status());
  which.Bind(now_unix_ms);
  return connection
      .Query(absl::StrCat("UPDATE best SET replaced_unix_ms = $6 WHERE replaced_unix_ms IS NULL"
                          " AND record IN (SELECT id FROM record WHERE ",
                          kWhich, ")"),
             which)
      .status();
}

absl::Status InsertBest(PostgresConnection& connection, int64_t record_id, int64_t now_unix_ms) {
  HONE_ASSIGN_OR_RETURN(const record::Record record, SelectRecord(connection, record_id));
  HONE_RETURN_IF_ERROR(CheckPublishable(
      record, [&](const std::string& digest) { return HasText(connection, digest); },
      [&](const std::string& digest) {
        return Exists(connection, "SELECT 1 FROM artifact WHERE digest = $1", digest);
      }));
  const std::string policy = record.policy.Key();
  PostgresParams key;
  key.Bind(absl::string_view(record.workload_digest)).Bind(absl::string_view(record.target));
  key.Bind(record.tolerance).Bind(absl::string_view(policy)).Bind(record_id).Bind(now_unix_ms);
  HONE_RETURN_IF_ERROR(
      connection
          .Query("UPDATE best SET replaced_unix_ms = $6 WHERE workload = $1 AND target = $2"
                 " AND tolerance = $3 AND policy = $4 AND replaced_unix_ms IS NULL"
                 " AND record <> $5",
                 key)
          .status());
  key.Bind(record.result.latency_ns);
  // What is still there is this very record: publishing it again changes nothing.
  return connection
      .Query(
          "INSERT INTO best (workload, target, tolerance, policy, record, published_unix_ms,"
          " latency_ns) VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING",
          key)
      .status();
}

absl::StatusOr<BestRow> SelectBest(PostgresConnection& connection, const BestQuery& query) {
  PostgresParams params;
  params.Bind(absl::string_view(query.workload_digest)).Bind(absl::string_view(query.target));
  params.Bind(query.tolerance);
  if (!query.policy.empty()) params.Bind(absl::string_view(query.policy));
  HONE_ASSIGN_OR_RETURN(
      PostgresRows rows,
      connection.Query(
          absl::StrCat("SELECT ", kRecordColumns,
                       ", w.text, s.text FROM best b JOIN record r ON r.id = b.record"
                       " JOIN environment e ON e.id = r.environment"
                       " JOIN text w ON w.digest = r.workload JOIN text s ON s.digest = r.space"
                       " WHERE b.workload = $1 AND b.target = $2 AND b.tolerance = $3"
                       " AND b.replaced_unix_ms IS NULL",
                       query.policy.empty() ? "" : " AND b.policy = $4",
                       " ORDER BY b.latency_ns LIMIT 1"),
          params));
  if (!rows.Next()) return NoBestError(query);
  HONE_ASSIGN_OR_RETURN(record::Record record, ReadRecord(rows));
  BestRow best{std::move(record)};
  best.workload = rows.Text();
  best.space = rows.Text();
  return best;
}

absl::StatusOr<ImportReport> ImportRows(PostgresConnection& connection, const ImportBatch& batch,
                                        int64_t now_unix_ms) {
  HONE_RETURN_IF_ERROR(
      CheckBatch(batch, [&](const std::string& digest) { return HasText(connection, digest); }));
  HONE_ASSIGN_OR_RETURN(const std::string here, SelectIdentity(connection));
  const auto run = [&](const PostgresCommand& command) {
    return connection.Query(command.sql, command.params);
  };
  for (const auto& [digest, text] : batch.texts) {
    HONE_RETURN_IF_ERROR(run(InsertText(digest, text, now_unix_ms)).status());
  }
  for (const auto& [digest, bytes] : batch.artifacts) {
    HONE_RETURN_IF_ERROR(run(InsertArtifact(digest, bytes, now_unix_ms)).status());
  }
  ImportReport report;
  std::vector<int64_t> ids(batch.records.size());
  for (size_t i = 0; i < batch.records.size(); ++i) {
    record::Record record = batch.records[i];
    HONE_ASSIGN_OR_RETURN(const std::optional<int64_t> same, FindSameRecord(connection, record));
    if (same.has_value()) {
      ids[i] = *same;
      ++report.known;
      continue;
    }
    record.job_id = ImportedJob(record.job_id, batch.origin, here);
    absl::StatusOr<PostgresRows> inserted = run(InsertRecord(record));
    if (!inserted.ok()) return AtRecord(batch, i, inserted.status());
    HONE_ASSIGN_OR_RETURN(ids[i], InsertedRecord({}, *inserted));
    ++report.added;
  }
  for (const size_t index : batch.bests) {
    const record::Record& record = batch.records[index];
    const absl::StatusOr<BestRow> best =
        SelectBest(connection, {.workload_digest = record.workload_digest,
                                .target = record.target,
                                .tolerance = record.tolerance,
                                .policy = record.policy.Key()});
    if (!best.ok() && !absl::IsNotFound(best.status())) return best.status();
    if (best.ok() && best->record.result.latency_ns <= record.result.latency_ns) continue;
    const absl::Status published = InsertBest(connection, ids[index], now_unix_ms);
    if (absl::IsFailedPrecondition(published)) continue;  // quarantined here
    if (!published.ok()) return AtRecord(batch, index, published);
    ++report.bests;
  }
  return report;
}

absl::StatusOr<int64_t> SizeBytes(PostgresConnection& connection) {
  HONE_ASSIGN_OR_RETURN(PostgresRows rows,
                        connection.Query("SELECT pg_database_size(current_database())"));
  return rows.Next() ? rows.Int64() : 0;
}

}  // namespace hone::store::postgres
