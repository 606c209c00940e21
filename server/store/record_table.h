#ifndef HONE_SERVER_STORE_RECORD_TABLE_H_
#define HONE_SERVER_STORE_RECORD_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

// The tables record and environment. Functions that write run on the writer's connection inside a
// transaction.
namespace hone::store {

// Inserts the record and, when it is new, its environment; sets record.id. Errors: those of
// Store::Append.
absl::Status InsertRecord(SqliteConnection& connection, record::Record& record);

// The id of a record of the same measurement, see Store::Import.
absl::StatusOr<std::optional<int64_t>> FindSameRecord(SqliteConnection& connection,
                                                      const record::Record& record);
// Its statement, whose plan a test holds.
std::string SameRecordSql();

// See Store::Quarantine.
absl::Status QuarantineRecords(SqliteConnection& connection, const std::string& workload_digest,
                               const std::string& target, const record::Candidate& candidate,
                               int64_t last_record, const std::string& reason, int64_t now_unix_ms);

// The statement behind Store::Query.
std::string QuerySql(const RecordQuery& query);
// InvalidArgument: as of CheckQuery.
absl::StatusOr<std::vector<record::Record>> QueryRecords(SqliteConnection& connection,
                                                         const RecordQuery& query);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_RECORD_TABLE_H_
