#ifndef HONE_SERVER_STORE_BEST_TABLE_H_
#define HONE_SERVER_STORE_BEST_TABLE_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

// The table best: which record is published for a (workload, target, tolerance, policy), and which
// were before.
namespace hone::store {

// Errors: those of Store::PublishBest. Runs on the writer's connection inside a transaction.
absl::Status InsertBest(SqliteConnection& connection, int64_t record_id, int64_t now_unix_ms);

// The statement behind Store::LookupBest, for one policy or for any.
std::string LookupBestSql(bool any_policy);
// NotFound: none is published.
absl::StatusOr<BestRow> SelectBest(SqliteConnection& connection, const BestQuery& query);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_BEST_TABLE_H_
