#ifndef HONE_SERVER_STORE_STANDING_TABLE_H_
#define HONE_SERVER_STORE_STANDING_TABLE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite_connection.h"
#include "server/store/store.h"

// The table standing. Errors are those of the Store's functions of the same purpose.
namespace hone::store {

absl::Status MergeStanding(SqliteConnection& connection, const StandingChange& change);
absl::StatusOr<std::vector<WorkerStanding>> SelectStandings(SqliteConnection& connection);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_STANDING_TABLE_H_
