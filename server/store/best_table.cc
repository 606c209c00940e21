#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/record/record.h"
#include "server/store/store.h"
#include "server/store/tables.h"

namespace hone::store {
namespace {

// Checks that a record can be published. FailedPrecondition: see Store::PublishBest.
absl::Status CheckPublishable(Connection& connection, const record::Record& record) {
  const auto refuse = [&](absl::string_view why) {
    return absl::FailedPreconditionError(
        absl::StrCat("record ", record.id, " cannot be published as best: ", why));
  };
  if (record.policy.name != "confirm") {
    const bool screened = record.policy.name == "screen";
    return refuse(
        screened ? "it comes from a search, and was not confirmed"
                 : absl::StrCat("it was measured as '", record.policy.name, "', not confirmed"));
  }
  if (record.result.outcome != record::Outcome::kOk) {
    return refuse(absl::StrCat("its outcome is ", record::OutcomeName(record.result.outcome)));
  }
  if (record.quarantined) return refuse("it is quarantined");
  HONE_ASSIGN_OR_RETURN(const bool workload, HasText(connection, record.workload_digest));
  if (!workload) return refuse("the text of its workload is not in the store");
  HONE_ASSIGN_OR_RETURN(const bool space, HasText(connection, record.candidate.space_digest));
  if (!space) return refuse("the text of its design space is not in the store");
  HONE_ASSIGN_OR_RETURN(
      const bool artifact,
      connection.Has("SELECT 1 FROM artifact WHERE digest = ?", record.result.artifact_digest));
  return artifact ? absl::OkStatus() : refuse("its kernel is not in the store");
}

absl::Status NoBestError(const BestQuery& query) {
  return absl::NotFoundError(absl::StrCat("no best of the workload is known on ", query.target,
                                          " with tolerance ", query.tolerance));
}

// InvalidArgument: the record is of another task.
absl::Status CheckTask(const record::Record& record, const TaskKey& task) {
  if (record.workload_digest == task.workload_digest && record.target == task.target &&
      record.tolerance == task.tolerance) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "record ", record.id, " is of ",
      record.workload_digest == task.workload_digest ? "this" : "another", " workload, a ",
      record.op, ", on ", record.target, " with tolerance ", record.tolerance,
      "; the best to replace is on ", task.target, " with tolerance ", task.tolerance));
}

// NotFound: the task's best is not pinned.
absl::Status NoPinError(const TaskKey& task) {
  return absl::NotFoundError(absl::StrCat("no best of the workload is pinned on ", task.target,
                                          " with tolerance ", task.tolerance));
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

// AlreadyExists: another record is the published best, and it is pinned or is not `incumbent`.
absl::Status CheckIncumbent(Connection& connection, const record::Record& record,
                            std::optional<int64_t> incumbent) {
  const absl::StatusOr<BestRow> best =
      SelectBest(connection, {.workload_digest = record.workload_digest,
                              .target = record.target,
                              .tolerance = record.tolerance});
  if (!best.ok() && !absl::IsNotFound(best.status())) return best.status();
  const int64_t published = best.ok() ? best->record.id : 0;
  if (published == record.id) return absl::OkStatus();
  if (best.ok() && best->pin.unix_ms > 0) {
    return absl::AlreadyExistsError(absl::StrCat(
        "record ", record.id, " is not published: the best, ", published, ", is pinned"));
  }
  if (!incumbent.has_value() || published == *incumbent) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat("record ", record.id, " is not published: it was compared with ",
                   *incumbent == 0 ? "no best" : absl::StrCat("the best ", *incumbent), ", and ",
                   published == 0 ? "that best was withdrawn"
                                  : absl::StrCat("the best is ", published, " now")));
}

// Publishes a record in place of its task's published bests with this policy ("": any policy).
absl::Status ReplaceBests(Connection& connection, const record::Record& record,
                          const std::string& policy, int64_t now_unix_ms) {
  HONE_ASSIGN_OR_RETURN(Statement replace,
                        connection.Prepare(absl::StrCat(
                            "UPDATE best SET replaced_unix_ms = ? WHERE workload = ? AND target = ?"
                            " AND tolerance = ? AND replaced_unix_ms IS NULL AND record <> ?",
                            policy.empty() ? "" : " AND policy = ?")));
  replace.Bind(now_unix_ms).Bind(record.workload_digest).Bind(record.target);
  replace.Bind(record.tolerance).Bind(record.id);
  if (!policy.empty()) replace.Bind(policy);
  HONE_RETURN_IF_ERROR(replace.Run());
  // If the record itself is already published, its row is still there, and the insert does nothing.
  return connection.Run(
      "INSERT INTO best (workload, target, tolerance, policy, record, latency_ns,"
      " published_unix_ms) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
      record.workload_digest, record.target, record.tolerance, record.policy.Key(), record.id,
      record.result.latency_ns, now_unix_ms);
}

// Returns the statement whose rows ReadBest reads.
std::string BestSql(absl::string_view condition) {
  return absl::StrCat("SELECT ", Columns().select,
                      ", w.text, s.text, b.pinned_by, b.pinned_unix_ms"
                      " FROM best b CROSS JOIN record r CROSS JOIN environment e"
                      " CROSS JOIN text w CROSS JOIN text s"
                      " WHERE r.id = b.record AND e.id = r.environment AND w.digest = r.workload"
                      " AND s.digest = r.space AND b.replaced_unix_ms IS NULL AND ",
                      condition);
}

absl::StatusOr<BestRow> ReadBest(Statement& statement) {
  HONE_ASSIGN_OR_RETURN(record::Record record, ReadRecord(statement));
  BestRow best{std::move(record)};
  best.workload = statement.Text();
  best.space = statement.Text();
  best.pin.by = statement.Text();
  best.pin.unix_ms = statement.Int64();
  return best;
}

// Sets the pin of all published bests of a task. Before a pin is set, only one may be published.
absl::Status SetPin(Connection& connection, const TaskKey& task, const Pin& pin) {
  return connection.Run(
      "UPDATE best SET pinned_by = ?, pinned_unix_ms = ? WHERE workload = ? AND target = ?"
      " AND tolerance = ? AND replaced_unix_ms IS NULL",
      pin.by, pin.unix_ms, task.workload_digest, task.target, task.tolerance);
}

BestQuery AnyPolicy(const TaskKey& task) {
  return {
      .workload_digest = task.workload_digest, .target = task.target, .tolerance = task.tolerance};
}

absl::Status InsertPinnedBest(Connection& connection, const TaskKey& task, int64_t record_id,
                              const Pin& pin) {
  if (record_id == 0) {
    HONE_ASSIGN_OR_RETURN(const BestRow best, SelectBest(connection, AnyPolicy(task)));
    record_id = best.record.id;
  }
  HONE_ASSIGN_OR_RETURN(const record::Record record, SelectRecord(connection, record_id));
  HONE_RETURN_IF_ERROR(CheckTask(record, task));
  HONE_RETURN_IF_ERROR(CheckPublishable(connection, record));
  // A best of another policy would come before it if it were faster.
  HONE_RETURN_IF_ERROR(ReplaceBests(connection, record, /*policy=*/"", pin.unix_ms));
  return SetPin(connection, task, pin);
}

absl::Status RemovePin(Connection& connection, const TaskKey& task) {
  const absl::StatusOr<BestRow> best = SelectBest(connection, AnyPolicy(task));
  if (!best.ok() && !absl::IsNotFound(best.status())) return best.status();
  if (!best.ok() || best->pin.unix_ms == 0) return NoPinError(task);
  return SetPin(connection, task, Pin());
}

}  // namespace

absl::Status InsertBest(Connection& connection, int64_t record_id, std::optional<int64_t> incumbent,
                        int64_t now_unix_ms) {
  HONE_ASSIGN_OR_RETURN(const record::Record record, SelectRecord(connection, record_id));
  HONE_RETURN_IF_ERROR(CheckPublishable(connection, record));
  HONE_RETURN_IF_ERROR(CheckIncumbent(connection, record, incumbent));
  return ReplaceBests(connection, record, record.policy.Key(), now_unix_ms);
}

std::string LookupBestSql(bool any_policy) {
  return BestSql(absl::StrCat("b.workload = ? AND b.target = ? AND b.tolerance = ?",
                              any_policy ? " ORDER BY b.latency_ns LIMIT 1" : " AND b.policy = ?"));
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
  return ReadBest(statement);
}

void Store::PublishBest(int64_t record_id, std::optional<int64_t> incumbent, Done done) {
  Write([this, record_id,
         incumbent](Connection& c) { return InsertBest(c, record_id, incumbent, NowUnixMs()); },
        std::move(done), kRowBytes, WhenFull::kWait);
}

absl::StatusOr<BestRow> Store::LookupBest(const BestQuery& query) {
  return Get([&](Connection& c) { return SelectBest(c, query); });
}

void Store::PinBest(const TaskKey& task, int64_t record, const std::string& by, Done done) {
  Write([this, task, record,
         by](Connection& c) { return InsertPinnedBest(c, task, record, {by, NowUnixMs()}); },
        std::move(done), kRowBytes, WhenFull::kFail);
}

void Store::UnpinBest(const TaskKey& task, Done done) {
  Write([task](Connection& c) { return RemovePin(c, task); }, std::move(done), kRowBytes,
        WhenFull::kFail);
}

absl::StatusOr<std::vector<BestRow>> Store::PinnedBests() {
  return Get([](Connection& c) -> absl::StatusOr<std::vector<BestRow>> {
    std::vector<BestRow> bests;
    auto pinned = c.Prepare(BestSql("b.pinned_unix_ms > 0 ORDER BY b.id"));
    HONE_RETURN_IF_ERROR(Connection::ForEachRow(std::move(pinned), [&](Statement& row) {
      absl::StatusOr<BestRow> best = ReadBest(row);
      if (best.ok()) bests.push_back(*std::move(best));
      return best.status();
    }));
    return bests;
  });
}

}  // namespace hone::store
