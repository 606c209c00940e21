#ifndef HONE_SERVER_STORE_TABLES_H_
#define HONE_SERVER_STORE_TABLES_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/record/record.h"
#include "server/store/connection.h"
#include "server/store/read_limit.h"
#include "server/store/store.h"

// Functions of the tables that other sources need, for every database. Each table has a source
// file. Errors are those of the corresponding functions of Store. Functions that write run on the
// writer's connection inside a transaction. A function returns the SQL of a statement if a test
// checks its query plan on SQLite, or if PostgreSQL's writer sends it in its pipeline.
namespace hone::store {

template <typename Select>
auto Store::Get(Select select) -> decltype(select(std::declval<Connection&>())) {
  NoReads::Check();
  decltype(select(std::declval<Connection&>())) result = absl::UnknownError("no read ran");
  const absl::Status status = Read([&](Connection& connection) {
    result = select(connection);
    return result.status();
  });
  if (!status.ok()) return status;
  return result;
}

template <typename Result>
void Store::WriteForResult(absl::AnyInvocable<absl::StatusOr<Result>(Connection&)> write,
                           absl::AnyInvocable<void(absl::StatusOr<Result>) &&> done, size_t bytes,
                           WhenFull when_full) {
  // The second callback runs after the last run of the first.
  auto result = std::make_shared<Result>();
  Write(
      [result, write = std::move(write)](Connection& connection) mutable -> absl::Status {
        HONE_ASSIGN_OR_RETURN(*result, write(connection));
        return absl::OkStatus();
      },
      [result, done = std::move(done)](absl::Status status) mutable {
        if (status.ok()) {
          std::move(done)(*std::move(result));
        } else {
          std::move(done)(std::move(status));
        }
      },
      bytes, when_full);
}

// The tables identity, text and artifact. The last two hold bytes by digest, which are written
// once. Only the time of the last put changes; compaction uses it to keep rows that are still
// needed.

// The parameters of these statements are the digest, the bytes and the time.
inline constexpr char kInsertText[] =
    "INSERT INTO text (digest, text, put_unix_ms) VALUES (?, ?, ?)"
    " ON CONFLICT (digest) DO UPDATE SET put_unix_ms = excluded.put_unix_ms"
    " WHERE excluded.put_unix_ms > text.put_unix_ms";
inline constexpr char kInsertArtifact[] =
    "INSERT INTO artifact (digest, bytes, put_unix_ms) VALUES (?, ?, ?)"
    " ON CONFLICT (digest) DO UPDATE SET put_unix_ms = excluded.put_unix_ms"
    " WHERE excluded.put_unix_ms > artifact.put_unix_ms";

// InvalidArgument: the digest is empty.
absl::Status CheckDigest(const std::string& digest);
absl::Status InsertText(Connection& connection, const std::string& digest, absl::string_view text,
                        int64_t now_unix_ms);
absl::Status InsertArtifact(Connection& connection, const std::string& digest,
                            absl::string_view bytes, int64_t now_unix_ms);
absl::StatusOr<bool> HasText(Connection& connection, const std::string& digest);
absl::StatusOr<std::string> SelectIdentity(Connection& connection);

// The tables record and environment.

// Inserts the record, and its environment if that is new. Sets record.id.
absl::Status InsertRecord(Connection& connection, record::Record& record);
// Returns the id of a record of the same measurement, see Store::Import.
absl::StatusOr<std::optional<int64_t>> FindSameRecord(Connection& connection,
                                                      const record::Record& record);
std::string SameRecordSql(Dialect dialect = Dialect::kSqlite);
// Returns the statement of Store::Query in the order of ids.
std::string QuerySql(const RecordQuery& query, Dialect dialect = Dialect::kSqlite);
// Returns the statement of Store::Query in another order. A page behind a place needs two: `ties`
// are the records with the same value and another id, which come first.
std::string OrderedSql(const RecordQuery& query, bool ties, Dialect dialect = Dialect::kSqlite);

// The table best: the published record of each (workload, target, tolerance, policy), its pin, and
// the records that were published before.

absl::Status InsertBest(Connection& connection, int64_t record_id, std::optional<int64_t> incumbent,
                        int64_t now_unix_ms);
// Returns the statement of Store::LookupBest, for one policy or for any policy.
std::string LookupBestSql(bool any_policy);
absl::StatusOr<BestRow> SelectBest(Connection& connection, const BestQuery& query);

// The tables job and job_event. BindJob binds the columns in their order.

inline constexpr char kJobColumns[] =
    "id, request_id, request, state, error, summary, created_unix_ms, updated_unix_ms, owner,"
    " priority";

// The condition for an unfinished job.
inline constexpr char kUnfinished[] = "state IN ('pending', 'running', 'confirming')";

// InvalidArgument: see Store::PutJob.
inline absl::Status CheckJob(const JobRow& job) {
  constexpr std::array<absl::string_view, 6> kStates = {"pending", "running",   "confirming",
                                                        "done",    "cancelled", "failed"};
  constexpr std::array<absl::string_view, 3> kPriorities = {"low", "normal", "high"};
  if (job.id.empty()) return absl::InvalidArgumentError("a job needs an id");
  if (std::find(kStates.begin(), kStates.end(), job.state) == kStates.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", job.state, "' is not a job's state; known: ", absl::StrJoin(kStates, ", ")));
  }
  if (std::find(kPriorities.begin(), kPriorities.end(), job.priority) == kPriorities.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "'", job.priority, "' is not a priority; known: ", absl::StrJoin(kPriorities, ", ")));
  }
  return absl::OkStatus();
}

inline absl::Status SameRequestError(const JobRow& job) {
  return absl::AlreadyExistsError(
      absl::StrCat("request id '", job.request_id, "' belongs to a job other than '", job.id, "'"));
}

// Returns the error for a record whose event is missing.
inline absl::Status NoEventError(const JobStep& step) {
  return absl::FailedPreconditionError(absl::StrCat("job '", step.job_id, "': event ", step.event,
                                                    " is not stored, so its results are refused"));
}

// Returns the error for an event whose number is not `next`.
inline absl::Status EventNumberError(const JobEvent& event, int64_t next) {
  const std::string message = absl::StrCat("the next event of job '", event.job_id, "' has number ",
                                           next, ", not ", event.number);
  return event.number < next ? absl::AlreadyExistsError(message)
                             : absl::FailedPreconditionError(message);
}

template <typename Binder>
void BindJob(Binder& s, const JobRow& job) {
  s.Bind(job.id).Bind(job.request_id).BindBlob(job.request).Bind(job.state).BindRaw(job.error);
  s.BindBlob(job.summary).Bind(job.created_unix_ms).Bind(job.updated_unix_ms);
  s.Bind(job.owner).Bind(job.priority);
}

std::string UpsertJobSql();
// FailedPrecondition: the event of the step is not stored. OK if the step has no event.
absl::Status CheckStep(Connection& connection, const JobStep& step);
std::string UnfinishedJobsSql();
absl::StatusOr<std::vector<JobRow>> SelectUnfinishedJobs(Connection& connection);

// The tables model and cached. `most`: bytes of all values; more are forgotten at every
// kCachedSteps-th put.
std::string SelectModelSql();
inline constexpr int64_t kCachedSteps = 256;
absl::Status InsertCached(Connection& connection, const CachedRow& row, int64_t most);
absl::StatusOr<CachedRow> SelectCached(Connection& connection, const std::string& name,
                                       const std::string& environment);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_TABLES_H_
