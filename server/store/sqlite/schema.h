#ifndef HONE_SERVER_STORE_SQLITE_SCHEMA_H_
#define HONE_SERVER_STORE_SQLITE_SCHEMA_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/store/sqlite/connection.h"

namespace hone::store {

// Marks a SQLite file as a Hone store (PRAGMA application_id): "HONE".
inline constexpr int64_t kApplicationId = 0x484f4e45;

// One step of the schema. A released one is never changed: a change is a new one at the end of the
// table.
struct Migration {
  int version;      // 1, 2, … (PRAGMA user_version after it)
  const char* sql;  // statements separated by semicolons
};

// Every migration, oldest first.
const std::vector<Migration>& Migrations();

// Whether this is a store, or an empty database, that `migrations` can bring up to date. Changes
// nothing. FailedPrecondition: the schema is newer than the last migration, or the database belongs
// to another program. DataLoss: not a database, or a damaged one.
absl::Status CheckVersion(SqliteConnection& connection, const std::vector<Migration>& migrations);

// Brings an empty database or a store of an older schema to the last of `migrations`, each in one
// transaction with its version, and does nothing to a current one. REQUIRES: CheckVersion is OK.
// ResourceExhausted, PermissionDenied, Unavailable, DataLoss: as SqliteError says; the schema
// before the failed migration is kept.
absl::Status Migrate(SqliteConnection& connection, const std::vector<Migration>& migrations);

// Compares the tables and indexes with those that `migrations` make. DataLoss: they differ; the
// message names the first.
absl::Status CheckSchema(SqliteConnection& connection, const std::vector<Migration>& migrations);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_SCHEMA_H_
