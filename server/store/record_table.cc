#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/tables.h"
#include "spdlog/spdlog.h"

namespace hone::store {
namespace {

constexpr char kOkName[] = "ok";

absl::StatusOr<int64_t> EnvironmentId(Connection& connection,
                                      const record::Environment& environment) {
  static const auto* const find_sql =
      new std::string(absl::StrCat("SELECT id FROM environment WHERE (", Columns().environment,
                                   ") = (", Parameters(Columns().environment_count), ")"));
  HONE_ASSIGN_OR_RETURN(Statement find, connection.Prepare(*find_sql));
  BindEnvironment(find, environment);
  HONE_ASSIGN_OR_RETURN(const bool found, find.Step());
  if (found) return find.Int64();
  static const auto* const insert_sql =
      new std::string(absl::StrCat("INSERT INTO environment (", Columns().environment, ") VALUES (",
                                   Parameters(Columns().environment_count), ") RETURNING id"));
  HONE_ASSIGN_OR_RETURN(Statement insert, connection.Prepare(*insert_sql));
  BindEnvironment(insert, environment);
  HONE_RETURN_IF_ERROR(insert.Run());
  return insert.Int64();
}

// Returns the statement for the ids of RecordQuery::unpublished_best; its parameters are the
// query's target and workload. Each step of the recursion seeks the next (target, workload,
// tolerance) in the index of confirmed records, whose first record is the fastest: the cost grows
// with the tasks, not with the records.
std::string UnpublishedBestSql(const RecordQuery& query, Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  // SQLite seeks by a row of values only if those on the right have no affinity, which + removes.
  const absl::string_view plain = sqlite ? "+" : "";
  // PostgreSQL must know that both parts of the recursion are sorted alike.
  const absl::string_view bytewise = sqlite ? "" : " COLLATE \"C\"";
  std::string after;
  if (query.target.empty()) {
    after = absl::StrCat("(n.target, n.workload, n.tolerance) > (", plain, "t.target, ", plain,
                         "t.workload, ", plain, "t.tolerance)");
  } else if (query.workload_digest.empty()) {
    after = absl::StrCat("n.target = t.target AND (n.workload, n.tolerance) > (", plain,
                         "t.workload, ", plain, "t.tolerance)");
  } else {
    after = "n.target = t.target AND n.workload = t.workload AND n.tolerance > t.tolerance";
  }
  return absl::StrCat(
      "WITH RECURSIVE task (id, target, workload, tolerance) AS ("
      "SELECT CAST(0 AS bigint), CAST(? AS text)",
      bytewise, ", CAST(? AS text)", bytewise,
      ", CAST(-1 AS double precision)"
      " UNION ALL SELECT c.id, c.target, c.workload, c.tolerance FROM task t CROSS JOIN record c"
      " WHERE c.id = (SELECT n.id FROM record n WHERE n.policy_name = 'confirm'"
      " AND n.outcome = 'ok'"
      // Only the combined results of a confirmation, not its single processes.
      " AND n.processes > 0 AND ",
      sqlite ? "n.quarantined = 0" : "NOT n.quarantined", " AND ", after,
      " ORDER BY n.target, n.workload, n.tolerance, n.latency_ns LIMIT 1))"
      " SELECT t.id FROM task t WHERE NOT EXISTS (SELECT 1 FROM best b WHERE"
      " b.workload = t.workload AND b.target = t.target AND b.tolerance = t.tolerance"
      " AND b.replaced_unix_ms IS NULL)");
}

// What records are sorted by, in the order of RecordOrder: a column, and its member if it is a
// text.
struct OrderColumn {
  const char* name;
  std::string record::Record::* text = nullptr;
};
const OrderColumn& ColumnOf(RecordOrder order) {
  static constexpr OrderColumn kColumns[] = {{"id"},
                                             {"created_unix_ms"},
                                             {"op", &record::Record::op},
                                             {"workload", &record::Record::workload_digest},
                                             {"target", &record::Record::target},
                                             {"job", &record::Record::job_id},
                                             {"latency_ns"}};
  static_assert(std::size(kColumns) == static_cast<size_t>(RecordOrder::kLatency) + 1);
  return kColumns[static_cast<size_t>(order)];
}

// The rows of a query. Those that cannot be decoded are left out.
struct RecordRows {
  std::vector<record::Record> records;
  int left_out = 0;
  absl::Status problem;  // of the last one that was left out

  int size() const { return static_cast<int>(records.size()) + left_out; }
  absl::Status AddAll(Statement statement) {
    return Connection::ForEachRow(std::move(statement), [&](Statement& row) {
      absl::StatusOr<record::Record> record = ReadRecord(row);
      if (record.ok()) {
        records.push_back(*std::move(record));
      } else {
        ++left_out;
        problem = record.status();
      }
    });
  }
};

// Adds rows in another order than that of ids, until there is a page of them.
absl::Status AddOrdered(Connection& connection, const RecordQuery& query, bool ties,
                        RecordRows& rows) {
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare(OrderedSql(query, ties, connection.dialect())));
  if (!query.workload_digest.empty()) statement.Bind(query.workload_digest).Bind(query.target);
  if (query.after.has_value()) {
    const RecordPlace& place = *query.after;
    if (ColumnOf(query.order).text != nullptr) {
      statement.Bind(place.text);
    } else if (query.order == RecordOrder::kTime) {
      statement.Bind(static_cast<int64_t>(place.number));
    } else {
      statement.Bind(place.number);
    }
  }
  if (ties) statement.Bind(query.after->id);
  if (query.since_unix_ms != 0) statement.Bind(query.since_unix_ms);
  if (query.until_unix_ms != 0) statement.Bind(query.until_unix_ms);
  statement.Bind(int64_t{query.page_size} - rows.size());
  return rows.AddAll(std::move(statement));
}

absl::StatusOr<RecordRows> QueryOrdered(Connection& connection, const RecordQuery& query) {
  RecordRows rows;
  if (query.after.has_value()) {
    HONE_RETURN_IF_ERROR(AddOrdered(connection, query, /*ties=*/true, rows));
  }
  if (rows.size() < query.page_size) {
    HONE_RETURN_IF_ERROR(AddOrdered(connection, query, /*ties=*/false, rows));
  }
  return rows;
}

absl::StatusOr<RecordRows> QueryInOrderOfIds(Connection& connection, const RecordQuery& query) {
  const std::string sql = QuerySql(query, connection.dialect());
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(sql));
  statement.Bind(query.after_id);
  if (absl::StrContains(sql, "record_by_time")) statement.Bind(query.since_unix_ms);
  for (const std::string* text : {&query.workload_digest, &query.job_id, &query.proposer, &query.op,
                                  &query.outcome, &query.target}) {
    if (!text->empty()) statement.Bind(*text);
  }
  if (query.since_unix_ms != 0) statement.Bind(query.since_unix_ms);
  if (query.until_unix_ms != 0) statement.Bind(query.until_unix_ms);
  if (query.before_id != 0) statement.Bind(query.before_id);
  if (query.unpublished_best) statement.Bind(query.target).Bind(query.workload_digest);
  statement.Bind(int64_t{query.page_size});
  RecordRows rows;
  HONE_RETURN_IF_ERROR(rows.AddAll(std::move(statement)));
  return rows;
}

// `which`: the condition, whose parameters `bind` binds.
absl::Status MarkQuarantined(Connection& connection, const std::string& which,
                             absl::FunctionRef<void(Statement&)> bind, const std::string& reason) {
  HONE_ASSIGN_OR_RETURN(
      Statement mark,
      connection.Prepare(absl::StrCat("UPDATE record SET quarantined = ?, quarantine_reason = ?"
                                      " WHERE quarantined = ? AND ",
                                      which)));
  mark.BindBool(true).Bind(reason).BindBool(false);
  bind(mark);
  return mark.Run();
}

absl::StatusOr<std::vector<record::Record>> QueryRecords(Connection& connection,
                                                         const RecordQuery& query) {
  HONE_RETURN_IF_ERROR(CheckQuery(query));
  RecordQuery page = query;
  while (true) {
    HONE_ASSIGN_OR_RETURN(RecordRows rows, page.order == RecordOrder::kId
                                               ? QueryInOrderOfIds(connection, page)
                                               : QueryOrdered(connection, page));
    const bool at_end = rows.size() < page.page_size;
    const bool is_full = static_cast<int>(rows.records.size()) >= query.page_size;
    if (!at_end && !is_full) {  // read as many more as were left out, so that the page is full
      page.page_size = query.page_size + rows.left_out;
      continue;
    }
    if (rows.left_out > 0) {
      spdlog::warn("store {}: {} records are left out, because they cannot be read: {}",
                   connection.name(), rows.left_out, std::string(rows.problem.message()));
    }
    if (is_full) rows.records.resize(query.page_size);
    return std::move(rows.records);
  }
}

absl::Status QuarantineRecords(Connection& connection, const std::string& workload_digest,
                               const std::string& target, const record::Candidate& candidate,
                               int64_t last_record, const std::string& reason,
                               int64_t now_unix_ms) {
  const absl::string_view no_index = NoIndex(connection.dialect());
  const std::string which = absl::StrCat("workload = ? AND ", no_index, "target = ? AND ", no_index,
                                         "space = ? AND decisions = ? AND id <= ?");
  const auto bind = [&](Statement& statement) {
    statement.Bind(workload_digest).Bind(target).Bind(candidate.space_digest);
    statement.BindBlob(EncodeDecisions(candidate.decisions)).Bind(last_record);
  };
  HONE_RETURN_IF_ERROR(MarkQuarantined(connection, which, bind, reason));
  HONE_ASSIGN_OR_RETURN(
      Statement withdraw,
      connection.Prepare(absl::StrCat("UPDATE best SET replaced_unix_ms = ? WHERE replaced_unix_ms"
                                      " IS NULL AND record IN (SELECT id FROM record WHERE ",
                                      which, ")")));
  withdraw.Bind(now_unix_ms);
  bind(withdraw);
  return withdraw.Run();
}

absl::StatusOr<Forgotten> ForgetTask(Connection& connection, const TaskKey& task,
                                     const std::string& reason, int64_t now_unix_ms) {
  const std::string which = absl::StrCat("workload = ? AND ", NoIndex(connection.dialect()),
                                         "target = ? AND tolerance = ?");
  const auto bind = [&](Statement& statement) {
    statement.Bind(task.workload_digest).Bind(task.target).Bind(task.tolerance);
  };
  Forgotten forgotten;
  HONE_ASSIGN_OR_RETURN(Statement count,
                        connection.Prepare(absl::StrCat(
                            "SELECT COUNT(*) FROM record WHERE quarantined = ? AND ", which)));
  count.BindBool(false);
  bind(count);
  HONE_RETURN_IF_ERROR(count.Run());
  forgotten.records = count.Int64();
  if (forgotten.records == 0) {
    return absl::NotFoundError(absl::StrCat("nothing is known of workload ", task.workload_digest,
                                            " on ", task.target, " with tolerance ",
                                            task.tolerance));
  }
  HONE_ASSIGN_OR_RETURN(forgotten.bests,
                        QueryRecords(connection, {.workload_digest = task.workload_digest,
                                                  .target = task.target,
                                                  .best_only = true}));
  std::erase_if(forgotten.bests,
                [&](const record::Record& best) { return best.tolerance != task.tolerance; });
  HONE_RETURN_IF_ERROR(MarkQuarantined(connection, which, bind, reason));
  HONE_RETURN_IF_ERROR(
      connection.Run("UPDATE best SET replaced_unix_ms = ? WHERE workload = ? AND target = ?"
                     " AND tolerance = ? AND replaced_unix_ms IS NULL",
                     now_unix_ms, task.workload_digest, task.target, task.tolerance));
  return forgotten;
}

}  // namespace

absl::Status InsertRecord(Connection& connection, record::Record& record) {
  HONE_RETURN_IF_ERROR(CheckRecord(record));
  HONE_ASSIGN_OR_RETURN(const int64_t environment, EnvironmentId(connection, record.environment));
  static const auto* const sql = new std::string(
      absl::StrCat("INSERT INTO record (", Columns().insert, ", environment) VALUES (",
                   Parameters(Columns().insert_count + 1), ") RETURNING id"));
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(*sql));
  BindRecord(statement, record);
  statement.Bind(environment);
  HONE_RETURN_IF_ERROR(statement.Run());
  record.id = statement.Int64();
  return absl::OkStatus();
}

absl::StatusOr<std::optional<int64_t>> FindSameRecord(Connection& connection,
                                                      const record::Record& record) {
  HONE_ASSIGN_OR_RETURN(Statement same, connection.Prepare(SameRecordSql(connection.dialect())));
  same.Bind(record.created_unix_ms).Bind(record.workload_digest).Bind(record.target);
  same.Bind(record.tolerance).Bind(record.policy.name).Bind(record.policy.cache);
  same.Bind(int64_t{record.policy.threads}).Bind(record.candidate.space_digest);
  same.BindBlob(EncodeDecisions(record.candidate.decisions)).Bind(record.trial);
  same.Bind(record::OutcomeName(record.result.outcome)).Bind(record.result.latency_ns);
  HONE_ASSIGN_OR_RETURN(const bool found, same.Step());
  if (!found) return std::nullopt;
  return same.Int64();
}

std::string SameRecordSql(Dialect dialect) {
  const absl::string_view no_index = NoIndex(dialect);
  // SQLite stores a NaN latency as NULL.
  return absl::StrCat("SELECT id FROM record WHERE created_unix_ms = ? AND ", no_index,
                      "workload = ? AND ", no_index,
                      "target = ? AND tolerance = ? AND policy_name = ? AND policy_cache = ?"
                      " AND policy_threads = ? AND space = ? AND decisions = ? AND trial = ? AND ",
                      no_index, "outcome = ? AND latency_ns ",
                      dialect == Dialect::kSqlite ? "IS" : "=", " ? LIMIT 1");
}

std::string QuerySql(const RecordQuery& query, Dialect dialect) {
  const bool sqlite = dialect == Dialect::kSqlite;
  // Without statistics SQLite cannot know which index is the most selective, so a unary + excludes
  // all indexes but one. Each index ends with the id, so a page needs no sorting.
  std::string where;
  bool indexed = query.best_only || query.unpublished_best;
  const auto add = [&](absl::string_view column, absl::string_view condition) {
    absl::StrAppend(&where, " AND ", indexed ? NoIndex(dialect) : "", "r.", column, condition);
  };
  const auto filter = [&](absl::string_view column, bool set) {
    if (!set) return;
    add(column, " = ?");
    indexed = true;
  };
  filter("workload", !query.workload_digest.empty());
  filter("job", !query.job_id.empty());
  if (!query.proposer.empty()) {
    add("proposer", " = ?");
    // Most records have no proposer, so that the index is partial, like that of failures.
    if (!indexed) absl::StrAppend(&where, " AND r.proposer <> ''");
    indexed = true;
  }
  filter("op", !query.op.empty());
  if (!query.outcome.empty()) {
    add("outcome", " = ?");
    // Failures have a partial index, which is used only if the statement repeats its condition.
    if (!indexed && query.outcome != kOkName) {
      absl::StrAppend(&where, " AND r.outcome <> 'ok'");
      indexed = true;
    }
  }
  if (query.quarantine == QuarantineFilter::kOnly) {
    add("quarantined", sqlite ? " = 1" : " = true");
    indexed = true;
  }
  if (query.quarantine == QuarantineFilter::kNone) {
    absl::StrAppend(&where, " AND ", sqlite ? "+r.quarantined = 0" : "NOT r.quarantined");
  }
  filter("target", !query.target.empty());
  if (query.proposed) absl::StrAppend(&where, " AND ", NoIndex(dialect), "r.proposer <> ''");
  // Ids mostly grow with time, except that imported records are added later than they were
  // measured. The first page of a time span begins at its first id, which the index of times
  // contains.
  const bool by_time = sqlite && !indexed && query.since_unix_ms != 0 && query.after_id == 0;
  const absl::string_view no_index = NoIndex(dialect);
  if (query.since_unix_ms != 0) {
    absl::StrAppend(&where, " AND ", no_index, "r.created_unix_ms >= ?");
  }
  if (query.until_unix_ms != 0) {
    absl::StrAppend(&where, " AND ", no_index, "r.created_unix_ms < ?");
  }
  if (query.before_id != 0) absl::StrAppend(&where, " AND r.id < ?");
  if (query.best_only) {
    absl::StrAppend(&where,
                    " AND r.id IN (SELECT record FROM best WHERE replaced_unix_ms IS NULL)");
  }
  if (query.unpublished_best) {
    absl::StrAppend(&where, " AND r.id IN (", UnpublishedBestSql(query, dialect), ")");
  }
  return absl::StrCat(
      "SELECT ", Columns().select,
      " FROM record r CROSS JOIN environment e WHERE e.id = r.environment AND r.id > ",
      by_time ? "MAX(?, IFNULL((SELECT MIN(+id) - 1 FROM record INDEXED BY record_by_time"
                " WHERE created_unix_ms >= ?), 9223372036854775807))"
              : "?",
      where, " ORDER BY r.id", query.newest_first ? " DESC" : "", " LIMIT ?");
}

bool IsServed(const RecordQuery& query, RecordOrder order) {
  if (order == RecordOrder::kId) return true;
  const bool task = !query.workload_digest.empty() && !query.target.empty();
  const bool any_task = query.workload_digest.empty() && query.target.empty();
  const bool any_time = query.since_unix_ms == 0 && query.until_unix_ms == 0;
  if (!query.op.empty() || !query.job_id.empty() || query.best_only || query.unpublished_best ||
      query.proposed || !query.proposer.empty()) {
    return false;
  }
  if (order == RecordOrder::kLatency) {
    return (task || any_task) && any_time && (query.outcome.empty() || query.outcome == kOkName) &&
           query.quarantine != QuarantineFilter::kOnly;
  }
  return any_task && (any_time || order == RecordOrder::kTime) && query.outcome.empty() &&
         query.quarantine == QuarantineFilter::kAll;
}

RecordPlace PlaceOf(const record::Record& record, RecordOrder order) {
  RecordPlace place{.id = record.id};
  if (const auto text = ColumnOf(order).text; text != nullptr) place.text = record.*text;
  if (order == RecordOrder::kTime) place.number = static_cast<double>(record.created_unix_ms);
  if (order == RecordOrder::kLatency) place.number = record.result.latency_ns;
  return place;
}

std::string OrderedSql(const RecordQuery& query, bool ties, Dialect dialect) {
  const std::string column = absl::StrCat("r.", ColumnOf(query.order).name);
  const absl::string_view beyond = query.newest_first ? " < ?" : " > ?";
  const absl::string_view direction = query.newest_first ? " DESC" : "";
  std::string where;
  if (query.order == RecordOrder::kLatency) {
    // The condition of the indexes.
    absl::StrAppend(&where, " AND r.outcome = 'ok' AND ",
                    dialect == Dialect::kSqlite ? "r.quarantined = 0" : "NOT r.quarantined");
    if (!query.workload_digest.empty()) {
      absl::StrAppend(&where, " AND r.workload = ? AND r.target = ?");
    }
  }
  if (ties) {
    absl::StrAppend(&where, " AND ", column, " = ? AND r.id", beyond);
  } else if (query.after.has_value()) {
    absl::StrAppend(&where, " AND ", column, beyond);
  }
  // Behind a place, its time is the nearer bound.
  const absl::string_view no_index = NoIndex(dialect);
  if (query.since_unix_ms != 0) {
    absl::StrAppend(&where, " AND ",
                    ties || (query.after.has_value() && !query.newest_first) ? no_index : "",
                    "r.created_unix_ms >= ?");
  }
  if (query.until_unix_ms != 0) {
    absl::StrAppend(&where, " AND ",
                    ties || (query.after.has_value() && query.newest_first) ? no_index : "",
                    "r.created_unix_ms < ?");
  }
  return absl::StrCat("SELECT ", Columns().select,
                      " FROM record r CROSS JOIN environment e WHERE e.id = r.environment", where,
                      " ORDER BY ", column, direction, ", r.id", direction, " LIMIT ?");
}

size_t Store::BytesOf(const record::Record& record) {
  return kRowBytes + record.result.detail.size() + record.result.counters.size() +
         8 * (record.result.samples_ns.size() + record.candidate.decisions.size());
}

void Store::Append(record::Record record, const JobStep& step,
                   absl::AnyInvocable<void(absl::StatusOr<record::Record>) &&> done) {
  const size_t bytes = BytesOf(record);
  WriteForResult<record::Record>(
      [record = std::move(record), step](Connection& c) mutable -> absl::StatusOr<record::Record> {
        HONE_RETURN_IF_ERROR(CheckStep(c, step));
        HONE_RETURN_IF_ERROR(InsertRecord(c, record));
        return record;
      },
      std::move(done), bytes);
}

absl::StatusOr<std::vector<record::Record>> Store::Query(const RecordQuery& query) {
  return Get([&](Connection& c) { return QueryRecords(c, query); });
}

absl::Status Store::ForEachRecord(RecordQuery query,
                                  absl::FunctionRef<void(const record::Record&)> visit,
                                  const std::function<absl::Status()>& stop) {
  query.page_size = 1000;
  while (true) {
    if (stop != nullptr) HONE_RETURN_IF_ERROR(stop());
    HONE_ASSIGN_OR_RETURN(const std::vector<record::Record> page, Query(query));
    for (const record::Record& record : page) visit(record);
    if (static_cast<int>(page.size()) < query.page_size) return absl::OkStatus();
    query.after_id = page.back().id;
  }
}

absl::StatusOr<record::Record> Store::GetRecord(int64_t id) {
  HONE_ASSIGN_OR_RETURN(std::vector<record::Record> found,
                        Query({.page_size = 1, .after_id = id - 1}));
  if (!found.empty() && found[0].id == id) return std::move(found[0]);
  return absl::NotFoundError(
      absl::StrCat("there is no record ", id, "; hone records query lists the records"));
}

void Store::Quarantine(const std::string& workload_digest, const std::string& target,
                       const record::Candidate& candidate, int64_t last_record,
                       const std::string& reason, Done done) {
  Write(
      [=, this](Connection& c) {
        return QuarantineRecords(c, workload_digest, target, candidate, last_record, reason,
                                 NowUnixMs());
      },
      std::move(done), kRowBytes, WhenFull::kWait);
}

void Store::Forget(const TaskKey& task, const std::string& reason,
                   absl::AnyInvocable<void(absl::StatusOr<Forgotten>) &&> done) {
  WriteForResult<Forgotten>(
      [this, task, reason](Connection& c) { return ForgetTask(c, task, reason, NowUnixMs()); },
      std::move(done), kRowBytes, WhenFull::kFail);
}

}  // namespace hone::store
