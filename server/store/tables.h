#ifndef HONE_SERVER_STORE_TABLES_H_
#define HONE_SERVER_STORE_TABLES_H_

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
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
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/record/fields.h"
#include "common/record/record.h"
#include "server/store/connection.h"
#include "server/store/read_limit.h"
#include "server/store/store.h"

namespace hone::store {

// The blobs of the record table. Their formats are part of the schema, so a change of a format
// needs a migration.
//
// Decisions: the zigzag form of each value in base 128, low group first, like Protobuf's sint64.
// Most decisions take one byte.
std::string EncodeDecisions(const std::vector<int64_t>& decisions);
// DataLoss: the blob is malformed.
absl::StatusOr<std::vector<int64_t>> DecodeDecisions(absl::string_view bytes);

// Samples: IEEE 754 binary64, little-endian, 8 bytes each.
std::string EncodeSamples(const std::vector<double>& samples);
// DataLoss: the size is not a multiple of 8 bytes.
absl::StatusOr<std::vector<double>> DecodeSamples(absl::string_view bytes);

// Lists of columns for use in statements, in the order of common/record/fields.h.
struct RecordColumns {
  std::string select;       // what ReadRecord reads, from record r and environment e
  std::string insert;       // what BindRecord binds
  std::string environment;  // what BindEnvironment binds
  int insert_count = 0;
  int environment_count = 0;
};
const RecordColumns& Columns();

// Checks the fields that every record must have. InvalidArgument: see Store::Append.
inline absl::Status CheckRecord(const record::Record& record) {
  if (record.workload_digest.empty() || record.target.empty()) {
    return absl::InvalidArgumentError("a record needs a workload digest and a target");
  }
  if (!std::isfinite(record.tolerance) || record.tolerance < 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record's tolerance must be a finite number ≥ 0, not ", record.tolerance));
  }
  const double latency_ns = record.result.latency_ns;
  if (record.result.outcome == record::Outcome::kOk &&
      !(latency_ns > 0 && std::isfinite(latency_ns))) {
    return absl::InvalidArgumentError(
        absl::StrCat("a record with outcome ok needs a positive latency, not ", latency_ns, " ns"));
  }
  return absl::OkStatus();
}

// InvalidArgument: the page size is not from 1 to 1000, the outcome is unknown, or no index serves
// the order.
inline absl::Status CheckQuery(const RecordQuery& query) {
  if (query.page_size < 1 || query.page_size > 1000) {
    return absl::InvalidArgumentError(
        absl::StrCat("a page has 1 to 1000 records, not ", query.page_size));
  }
  if (!IsServed(query, query.order)) {
    return absl::InvalidArgumentError("records cannot be sorted in this order with these filters");
  }
  if (query.outcome.empty()) return absl::OkStatus();
  return record::OutcomeFromName(query.outcome).status();
}

// Binds the columns of the record table. The environment is a row of another table.
template <typename Binder>
class FieldBinder {
 public:
  explicit FieldBinder(Binder& binder) : binder_(binder) {}

  void operator()(const record::Field& field, const std::string& text) {
    field.raw ? binder_.BindRaw(text) : binder_.Bind(absl::string_view(text));
  }
  void operator()(const record::Field&, bool value) { binder_.BindBool(value); }
  void operator()(const record::Field&, double value) { binder_.Bind(value); }
  void operator()(const record::Field& field, int64_t value) {
    if (!field.by_store) binder_.Bind(value);
  }
  void operator()(const record::Field& field, int value) { (*this)(field, int64_t{value}); }
  void operator()(const record::Field&, record::Outcome value) {
    binder_.Bind(record::OutcomeName(value));
  }
  void operator()(const record::Field&, const std::vector<int64_t>& decisions) {
    binder_.BindBlob(EncodeDecisions(decisions));
  }
  void operator()(const record::Field&, const std::vector<double>& samples) {
    binder_.BindBlob(EncodeSamples(samples));
  }
  void operator()(const record::Field&, const record::Environment&) {}  // a separate table
  template <typename T>
  void operator()(const record::Field&, const T& nested) {
    VisitFields(nested, *this);
  }

 private:
  Binder& binder_;
};

template <typename Binder>
void BindRecord(Binder& s, const record::Record& record) {
  FieldBinder<Binder> binder(s);
  VisitFields(record, binder);
}

template <typename Binder>
void BindEnvironment(Binder& s, const record::Environment& environment) {
  FieldBinder<Binder> binder(s);
  VisitFields(environment, binder);
}

class FieldReader {
 public:
  explicit FieldReader(Statement& row) : row_(row) {}

  void operator()(const record::Field& field, std::string& text) {
    text = field.raw ? row_.Raw() : row_.Text();
  }
  void operator()(const record::Field&, bool& value) { value = row_.Bool(); }
  void operator()(const record::Field&, double& value) { value = row_.Double(); }
  void operator()(const record::Field&, int64_t& value) { value = row_.Int64(); }
  void operator()(const record::Field&, int& value) { value = static_cast<int>(row_.Int64()); }
  void operator()(const record::Field&, record::Outcome& value) {
    const std::string name = row_.Text();
    const absl::StatusOr<record::Outcome> known = record::OutcomeFromName(name);
    if (known.ok()) {
      value = *known;
    } else {
      status_.Update(absl::DataLossError(absl::StrCat("unknown outcome '", name, "'")));
    }
  }
  void operator()(const record::Field&, std::vector<int64_t>& decisions) {
    Take(DecodeDecisions(row_.Blob()), decisions);
  }
  void operator()(const record::Field&, std::vector<double>& samples) {
    Take(DecodeSamples(row_.Blob()), samples);
  }
  template <typename T>
  void operator()(const record::Field&, T& nested) {
    VisitFields(nested, *this);
  }
  const absl::Status& status() const { return status_; }

 private:
  template <typename T>
  void Take(absl::StatusOr<T> decoded, T& value) {
    status_.Update(decoded.status());
    if (decoded.ok()) value = *std::move(decoded);
  }

  Statement& row_;
  absl::Status status_;
};

// Reads a record from the next columns of the row. DataLoss: an unknown outcome or a malformed
// blob.
inline absl::StatusOr<record::Record> ReadRecord(Statement& row) {
  record::Record record;
  FieldReader reader(row);
  VisitFields(record, reader);
  if (reader.status().ok()) return record;
  return absl::DataLossError(absl::StrCat("record ", record.id, ": ", reader.status().message()));
}

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

// "?, ?, ?"
inline std::string Parameters(size_t count) {
  return absl::StrJoin(std::vector<absl::string_view>(count, "?"), ", ");
}

// Returns the statement that inserts a row, or replaces the one with the same key, which is the
// first of `columns`. REPLACE would delete the row that others refer to.
inline std::string UpsertSql(absl::string_view table, absl::string_view columns) {
  const std::vector<absl::string_view> names = absl::StrSplit(columns, ", ");
  const auto assign = [](std::string* sql, absl::string_view name) {
    absl::StrAppend(sql, name, " = excluded.", name);
  };
  return absl::StrCat("INSERT INTO ", table, " (", columns, ") VALUES (", Parameters(names.size()),
                      ") ON CONFLICT (", names[0], ") DO UPDATE SET ",
                      absl::StrJoin(names.begin() + 1, names.end(), ", ", assign));
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

// SQLite: the largest job id that is a number. Others, from imports and tests, count as 0.
inline constexpr char kLastJobSql[] = "SELECT IFNULL(MAX(CAST(id AS INTEGER)), 0) FROM job";

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
