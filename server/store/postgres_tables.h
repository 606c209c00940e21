#ifndef HONE_SERVER_STORE_POSTGRES_TABLES_H_
#define HONE_SERVER_STORE_POSTGRES_TABLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/postgres_connection.h"
#include "server/store/store.h"

// The statements of each table on PostgreSQL. Errors are those of the Store's functions of the same
// purpose; what writes runs inside a transaction of the writer, which holds the one write lock.
namespace hone::store::postgres {

// Commands of the hot path, for the writer's pipeline.
PostgresCommand InsertText(const std::string& digest, const std::string& text, int64_t now_unix_ms);
PostgresCommand InsertArtifact(const std::string& digest, const std::string& bytes,
                               int64_t now_unix_ms);
PostgresCommand InsertRecord(const record::Record& record, const JobFence& fence = {});
// The id, of the row that InsertRecord gives. Aborted: fenced off. FailedPrecondition: the event
// is not stored.
absl::StatusOr<int64_t> InsertedRecord(const JobFence& fence, PostgresRows& rows);
PostgresCommand UpsertJob(const JobRow& job);  // a row unless fenced off
PostgresCommand InsertEvent(const JobEvent& event);
// What the event's row says. NotFound, Aborted, AlreadyExists, FailedPrecondition: see AppendEvent.
absl::Status CheckEventInserted(const JobEvent& event, PostgresRows& rows);

absl::StatusOr<std::string> SelectText(PostgresConnection& connection, const std::string& digest);
absl::StatusOr<std::string> SelectArtifact(PostgresConnection& connection,
                                           const std::string& digest);
absl::StatusOr<std::string> SelectIdentity(PostgresConnection& connection);

absl::StatusOr<std::vector<record::Record>> QueryRecords(PostgresConnection& connection,
                                                         const RecordQuery& query);
absl::Status QuarantineRecords(PostgresConnection& connection, const std::string& workload_digest,
                               const std::string& target, const record::Candidate& candidate,
                               int64_t last_record, const std::string& reason, int64_t now_unix_ms);
absl::Status InsertBest(PostgresConnection& connection, int64_t record_id, int64_t now_unix_ms);
absl::StatusOr<BestRow> SelectBest(PostgresConnection& connection, const BestQuery& query);

absl::StatusOr<JobRow> SelectJob(PostgresConnection& connection, const std::string& id);
absl::StatusOr<JobRow> SelectJobByRequest(PostgresConnection& connection,
                                          const std::string& request_id);
absl::StatusOr<std::vector<JobRow>> SelectJobs(PostgresConnection& connection, int page_size,
                                               const std::string& after_id);
absl::StatusOr<std::vector<JobEvent>> SelectEvents(PostgresConnection& connection,
                                                   const std::string& job_id);
absl::StatusOr<int64_t> NextJobNumber(PostgresConnection& connection);
absl::StatusOr<std::vector<JobRow>> ClaimJobs(PostgresConnection& connection, const JobClaim& claim,
                                              int limit);
absl::StatusOr<std::vector<std::string>> RenewJobs(PostgresConnection& connection,
                                                   const JobClaim& claim);
absl::Status ReleaseJob(PostgresConnection& connection, const std::string& id, int64_t fence);
// Aborted: the job's fence is another, or there is no such job. Of a fence without a job: OK.
absl::Status CheckFence(PostgresConnection& connection, const JobFence& fence);
absl::Status MergeStanding(PostgresConnection& connection, const StandingChange& change);
absl::StatusOr<std::vector<WorkerStanding>> SelectStandings(PostgresConnection& connection);

absl::StatusOr<int64_t> InsertModel(PostgresConnection& connection, const ModelRow& model);
absl::StatusOr<ModelRow> SelectModel(PostgresConnection& connection, const ModelKey& key);
absl::StatusOr<ModelRow> SelectModelById(PostgresConnection& connection, int64_t id);
absl::StatusOr<std::vector<ModelRow>> SelectModels(PostgresConnection& connection,
                                                   const std::string& name,
                                                   const std::string& target);

absl::StatusOr<ImportReport> ImportRows(PostgresConnection& connection, const ImportBatch& batch,
                                        int64_t now_unix_ms);
// In a transaction of its own; the connection holds no lock of the writers.
absl::StatusOr<CompactReport> Compact(PostgresConnection& connection,
                                      const CompactOptions& options);
absl::StatusOr<int64_t> SizeBytes(PostgresConnection& connection);

}  // namespace hone::store::postgres

#endif  // HONE_SERVER_STORE_POSTGRES_TABLES_H_
