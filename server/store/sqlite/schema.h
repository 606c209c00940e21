#ifndef HONE_SERVER_STORE_SQLITE_SCHEMA_H_
#define HONE_SERVER_STORE_SQLITE_SCHEMA_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/store/sqlite/connection.h"

namespace hone::store {

// Marks a SQLite file as a Hone store: "HONE", in PRAGMA application_id.
inline constexpr int64_t kApplicationId = 0x484f4e45;

// The statements of each version of the schema, separated by semicolons: the first creates the
// tables, and each further one changes those of the version before it (PRAGMA user_version).
const std::vector<const char*>& SqliteMigrations();

// Checks that the database is empty, or a store that `migrations` can bring up to date. Changes
// nothing. A store of an older version is read completely, because the migration of a damaged store
// could lose what can still be saved. FailedPrecondition: the schema is newer than the last
// migration, or the database belongs to another program. DataLoss: the file is not a database, or
// is damaged.
absl::Status CheckVersion(SqliteConnection& connection, const std::vector<const char*>& migrations);

// Applies the missing migrations to an empty database or an older store, each in one transaction
// with its version. Does nothing if the schema is current. REQUIRES: CheckVersion returned OK.
// Errors are those of SqliteError; the schema before the failed migration is kept.
absl::Status Migrate(SqliteConnection& connection, const std::vector<const char*>& migrations);

// Compares the tables and indexes with those that `migrations` create up to the store's version.
// DataLoss: they differ; the message names the first difference. REQUIRES: CheckVersion returned
// OK.
absl::Status CheckSchema(SqliteConnection& connection, const std::vector<const char*>& migrations);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_SCHEMA_H_
