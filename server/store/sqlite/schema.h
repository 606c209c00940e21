#ifndef HONE_SERVER_STORE_SQLITE_SCHEMA_H_
#define HONE_SERVER_STORE_SQLITE_SCHEMA_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "server/store/sqlite/connection.h"

namespace hone::store {

// Marks a SQLite file as a Hone store: "HONE", in PRAGMA application_id.
inline constexpr int64_t kApplicationId = 0x484f4e45;

// One step of the schema. A released step is never changed; each change of the schema is a new step
// at the end of the table.
struct Migration {
  int version;      // 1, 2, … (PRAGMA user_version after it)
  const char* sql;  // statements separated by semicolons
};

// Every migration, oldest first.
const std::vector<Migration>& Migrations();

// Checks that the database is empty, or a store that `migrations` can bring up to date. Changes
// nothing. FailedPrecondition: the schema is newer than the last migration, or the database belongs
// to another program. DataLoss: the file is not a database, or is damaged.
absl::Status CheckVersion(SqliteConnection& connection, const std::vector<Migration>& migrations);

// Applies the missing migrations to an empty database or an older store, each in one transaction
// with its version. Does nothing if the schema is current. REQUIRES: CheckVersion returned OK.
// Errors are those of SqliteError; the schema before the failed migration is kept.
absl::Status Migrate(SqliteConnection& connection, const std::vector<Migration>& migrations);

// Compares the tables and indexes with those that `migrations` create. DataLoss: they differ; the
// message names the first difference.
absl::Status CheckSchema(SqliteConnection& connection, const std::vector<Migration>& migrations);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_SCHEMA_H_
