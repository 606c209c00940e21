#ifndef HONE_SERVER_STORE_RECORD_TABLE_H_
#define HONE_SERVER_STORE_RECORD_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/record/record.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

// The tables record and environment. Functions that write run on the writer's connection inside a
// transaction.
namespace hone::store {

// The select list that ReadRecord reads, over the tables record r and environment e.
extern const char kRecordColumns[];

// Inserts the record and, when it is new, its environment; sets record.id. Errors: those of
// Store::Append.
absl::Status InsertRecord(SqliteConnection& connection, record::Record& record);

// Reads a record from the next columns of the row. DataLoss: an unknown outcome or a malformed
// blob.
absl::StatusOr<record::Record> ReadRecord(Statement& row);

// See Store::Quarantine.
absl::Status QuarantineRecords(SqliteConnection& connection, const std::string& workload_digest,
                               const std::string& target, const record::Candidate& candidate,
                               int64_t last_record, int64_t now_unix_ms);

// The statement behind Store::Query.
std::string QuerySql(const RecordQuery& query);
// InvalidArgument: the page size is not in 1 to 1000.
absl::StatusOr<std::vector<record::Record>> QueryRecords(SqliteConnection& connection,
                                                         const RecordQuery& query);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_RECORD_TABLE_H_
