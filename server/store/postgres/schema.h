#ifndef HONE_SERVER_STORE_POSTGRES_SCHEMA_H_
#define HONE_SERVER_STORE_POSTGRES_SCHEMA_H_

#include <vector>

#include "absl/status/status.h"
#include "server/store/postgres/connection.h"

namespace hone::store {

// The statements of each version of the schema, as SqliteMigrations. PostgreSQL's versions have
// their own numbers.
const std::vector<const char*>& PostgresMigrations();

// Applies the missing migrations to an empty schema of the database or an older store, all in one
// transaction, which stores their numbers in the table hone_schema. Servers that start at the same
// time wait for each other. A server that does not lead leaves an older store as it is.
// FailedPrecondition: the store is from a newer Hone, or the schema contains tables of another
// program.
absl::Status MigratePostgres(PostgresConnection& connection,
                             const std::vector<const char*>& migrations, bool is_leader = true);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_SCHEMA_H_
