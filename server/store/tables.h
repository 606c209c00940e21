#ifndef HONE_SERVER_STORE_TABLES_H_
#define HONE_SERVER_STORE_TABLES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/record.h"
#include "server/store/connection.h"
#include "server/store/store.h"

// Reads and writes of the tables, for every database. Each table has a source file. Errors are
// those of the corresponding functions of Store. Functions that write run on the writer's
// connection inside a transaction. A function returns the SQL of a statement if a test checks its
// query plan on SQLite, or if PostgreSQL's writer sends it in its pipeline.
namespace hone::store {

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
// NotFound: the digest is not in the store.
absl::StatusOr<std::string> SelectText(Connection& connection, const std::string& digest);
absl::StatusOr<std::string> SelectArtifact(Connection& connection, const std::string& digest);

// Returns the store's name, see Store::Identity.
absl::StatusOr<std::string> SelectIdentity(Connection& connection);

// The tables record and environment.

// Inserts the record, and its environment if that is new. Sets record.id.
absl::Status InsertRecord(Connection& connection, record::Record& record);

// Returns the id of a record of the same measurement, see Store::Import.
absl::StatusOr<std::optional<int64_t>> FindSameRecord(Connection& connection,
                                                      const record::Record& record);
std::string SameRecordSql(Dialect dialect = Dialect::kSqlite);

// See Store::Quarantine.
absl::Status QuarantineRecords(Connection& connection, const std::string& workload_digest,
                               const std::string& target, const record::Candidate& candidate,
                               int64_t last_record, const std::string& reason, int64_t now_unix_ms);

// See Store::Forget.
absl::StatusOr<Forgotten> ForgetTask(Connection& connection, const TaskKey& task,
                                     const std::string& reason, int64_t now_unix_ms);

// Returns the statement of Store::Query in the order of ids.
std::string QuerySql(const RecordQuery& query, Dialect dialect = Dialect::kSqlite);
// Returns the statement of Store::Query in another order. A page behind a place needs two: `ties`
// are the records with the same value and another id, which come first.
std::string OrderedSql(const RecordQuery& query, bool ties, Dialect dialect = Dialect::kSqlite);
// InvalidArgument: see CheckQuery.
absl::StatusOr<std::vector<record::Record>> QueryRecords(Connection& connection,
                                                         const RecordQuery& query);

// The table best: the published record of each (workload, target, tolerance, policy), its pin, and
// the records that were published before.

// See Store::PublishBest.
absl::Status InsertBest(Connection& connection, int64_t record_id, std::optional<int64_t> incumbent,
                        int64_t now_unix_ms);

// Returns the statement of Store::LookupBest, for one policy or for any policy.
std::string LookupBestSql(bool any_policy);
// NotFound: none is published.
absl::StatusOr<BestRow> SelectBest(Connection& connection, const BestQuery& query);

// See Store::PinBest, UnpinBest and PinnedBests.
absl::Status InsertPinnedBest(Connection& connection, const TaskKey& task, int64_t record_id,
                              const Pin& pin);
absl::Status RemovePin(Connection& connection, const TaskKey& task);
absl::StatusOr<std::vector<BestRow>> SelectPinnedBests(Connection& connection);

// The tables job and job_event.

// Returns the statement of UpsertJob.
std::string UpsertJobSql();
absl::Status UpsertJob(Connection& connection, const JobRow& job);
absl::Status InsertEvent(Connection& connection, const JobEvent& event);

// FailedPrecondition: the event of the step is not stored. OK if the step has no event.
absl::Status CheckStep(Connection& connection, const JobStep& step);

absl::StatusOr<JobRow> SelectJob(Connection& connection, const std::string& id);
absl::StatusOr<JobRow> SelectJobByRequest(Connection& connection, const std::string& request_id);
absl::StatusOr<std::vector<JobRow>> SelectJobs(Connection& connection, int page_size,
                                               const std::string& after_id);
absl::StatusOr<std::vector<JobEvent>> SelectEvents(Connection& connection,
                                                   const std::string& job_id);

// Returns the statement of SelectUnfinishedJobs.
std::string UnfinishedJobsSql();
absl::StatusOr<std::vector<JobRow>> SelectUnfinishedJobs(Connection& connection);

// The table model: the newest few trained cost models of each key.

absl::StatusOr<int64_t> InsertModel(Connection& connection, const ModelRow& model);

absl::StatusOr<ModelRow> SelectModel(Connection& connection, const ModelKey& key);
absl::StatusOr<ModelRow> SelectModelById(Connection& connection, int64_t id);
absl::StatusOr<std::vector<ModelRow>> SelectModels(Connection& connection, const std::string& name,
                                                   const std::string& target, bool with_earlier);

std::string SelectModelSql();

// The table cached. `most`: bytes of all values; more are forgotten at every kCachedSteps-th put.
inline constexpr int64_t kCachedSteps = 256;
absl::Status InsertCached(Connection& connection, const CachedRow& row, int64_t most);
absl::StatusOr<CachedRow> SelectCached(Connection& connection, const std::string& name,
                                       const std::string& environment);

// The table standing.

absl::Status MergeStanding(Connection& connection, const StandingChange& change);
absl::StatusOr<std::vector<WorkerStanding>> SelectStandings(Connection& connection);

// The table worker.

absl::Status UpsertWorker(Connection& connection, const KnownWorker& worker);
absl::StatusOr<std::vector<KnownWorker>> SelectWorkers(Connection& connection);

// See Store::Import.
absl::StatusOr<ImportReport> ImportRows(Connection& connection, const ImportBatch& batch,
                                        int64_t now_unix_ms);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_TABLES_H_
