#ifndef HONE_SERVER_STORE_JOB_TABLE_H_
#define HONE_SERVER_STORE_JOB_TABLE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

// The tables job and job_event. Errors are those of the Store's functions of the same purpose.
namespace hone::store {

absl::Status UpsertJob(SqliteConnection& connection, const JobRow& job);
absl::Status InsertEvent(SqliteConnection& connection, const JobEvent& event);

// Aborted: the job's fence is another, or there is no such job. Of a fence without a job: OK.
absl::Status CheckFence(SqliteConnection& connection, const JobFence& fence);

absl::StatusOr<JobRow> SelectJob(SqliteConnection& connection, const std::string& id);
absl::StatusOr<JobRow> SelectJobByRequest(SqliteConnection& connection,
                                          const std::string& request_id);
absl::StatusOr<std::vector<JobRow>> SelectJobs(SqliteConnection& connection, int page_size,
                                               const std::string& after_id);
absl::StatusOr<std::vector<JobEvent>> SelectEvents(SqliteConnection& connection,
                                                   const std::string& job_id);

// The statement that finds what ClaimJobRows takes, whose plan a test holds.
std::string ClaimableJobsSql();
absl::StatusOr<std::vector<JobRow>> ClaimJobRows(SqliteConnection& connection,
                                                 const JobClaim& claim, int limit);
absl::StatusOr<std::vector<std::string>> RenewJobRows(SqliteConnection& connection,
                                                      const JobClaim& claim);
absl::Status ReleaseJobRow(SqliteConnection& connection, const std::string& id, int64_t fence);
// Every claim, of a process that has just become the only opener: all others have ended.
absl::Status ReleaseEveryJob(SqliteConnection& connection);
// The largest number that is a job's id, 0 when there is none.
absl::StatusOr<int64_t> LastJobNumber(SqliteConnection& connection);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_JOB_TABLE_H_
