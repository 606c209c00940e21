#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/store/best_check.h"
#include "server/store/record_columns.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

absl::StatusOr<bool> Exists(Connection& connection, absl::string_view sql,
                            const std::string& digest) {
  HONE_ASSIGN_OR_RETURN(Statement statement, connection.Prepare(sql));
  return statement.Bind(digest).Step();
}

absl::StatusOr<record::Record> SelectRecord(Connection& connection, int64_t id) {
  HONE_ASSIGN_OR_RETURN(
      Statement statement,
      connection.Prepare(absl::StrCat("SELECT ", Columns().select,
                                      " FROM record r JOIN environment e ON e.id = r.environment"
                                      " WHERE r.id = ?")));
  statement.Bind(id);
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return absl::NotFoundError(absl::StrCat("there is no record ", id));
  return ReadRecord(statement);
}

// AlreadyExists: neither `incumbent` nor the record itself is the published best of its task.
absl::Status CheckIncumbent(Connection& connection, const record::Record& record,
                            int64_t incumbent) {
  const absl::StatusOr<BestRow> best =
      SelectBest(connection, {.workload_digest = record.workload_digest,
                              .target = record.target,
                              .tolerance = record.tolerance});
  if (!best.ok() && !absl::IsNotFound(best.status())) return best.status();
  const int64_t published = best.ok() ? best->record.id : 0;
  if (published == incumbent || published == record.id) return absl::OkStatus();
  return absl::AlreadyExistsError(absl::StrCat("record ", record.id, " was compared with best ",
                                               incumbent, ", and the best is ", published, " now"));
}

}  // namespace

absl::Status InsertBest(Connection& connection, int64_t record_id, std::optional<int64_t> incumbent,
                        int64_t now_unix_ms) {
  HONE_ASSIGN_OR_RETURN(const record::Record record, SelectRecord(connection, record_id));
  HONE_RETURN_IF_ERROR(CheckPublishable(
      record,
      [&](const std::string& digest) {
        return Exists(connection, "SELECT 1 FROM text WHERE digest = ?", digest);
      },
      [&](const std::string& digest) {
        return Exists(connection, "SELECT 1 FROM artifact WHERE digest = ?", digest);
      }));
  if (incumbent.has_value()) {
    HONE_RETURN_IF_ERROR(CheckIncumbent(connection, record, *incumbent));
  }
  const std::string policy = record.policy.Key();
  HONE_ASSIGN_OR_RETURN(
      Statement replace,
      connection.Prepare("UPDATE best SET replaced_unix_ms = ? WHERE workload = ? AND target = ?"
                         " AND tolerance = ? AND policy = ? AND replaced_unix_ms IS NULL"
                         " AND record <> ?"));
  replace.Bind(now_unix_ms).Bind(record.workload_digest).Bind(record.target);
  replace.Bind(record.tolerance).Bind(policy).Bind(record_id);
  HONE_RETURN_IF_ERROR(replace.Run());
  // If the record itself is already published, its row is still there, and the insert does nothing.
  HONE_ASSIGN_OR_RETURN(
      Statement insert,
      connection.Prepare("INSERT INTO best (workload, target, tolerance, policy, record,"
                         " latency_ns, published_unix_ms) VALUES (?, ?, ?, ?, ?, ?, ?)"
                         " ON CONFLICT DO NOTHING"));
  insert.Bind(record.workload_digest).Bind(record.target).Bind(record.tolerance).Bind(policy);
  insert.Bind(record_id).Bind(record.result.latency_ns).Bind(now_unix_ms);
  return insert.Run();
}

std::string LookupBestSql(bool any_policy) {
  return absl::StrCat("SELECT ", Columns().select,
                      ", w.text, s.text"
                      " FROM best b CROSS JOIN record r CROSS JOIN environment e"
                      " CROSS JOIN text w CROSS JOIN text s"
                      " WHERE r.id = b.record AND e.id = r.environment AND w.digest = r.workload"
                      " AND s.digest = r.space"
                      " AND b.workload = ? AND b.target = ? AND b.tolerance = ?"
                      " AND b.replaced_unix_ms IS NULL",
                      any_policy ? " ORDER BY b.latency_ns LIMIT 1" : " AND b.policy = ?");
}

absl::StatusOr<BestRow> SelectBest(Connection& connection, const BestQuery& query) {
  static const auto* const any = new std::string(LookupBestSql(true));
  static const auto* const one = new std::string(LookupBestSql(false));
  HONE_ASSIGN_OR_RETURN(Statement statement,
                        connection.Prepare(query.policy.empty() ? *any : *one));
  statement.Bind(query.workload_digest).Bind(query.target).Bind(query.tolerance);
  if (!query.policy.empty()) statement.Bind(query.policy);
  HONE_ASSIGN_OR_RETURN(const bool found, statement.Step());
  if (!found) return NoBestError(query);
  HONE_ASSIGN_OR_RETURN(record::Record record, ReadRecord(statement));
  BestRow best{std::move(record)};
  best.workload = statement.Text();
  best.space = statement.Text();
  return best;
}

}  // namespace hone::store
