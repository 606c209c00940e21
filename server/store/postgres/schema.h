#ifndef HONE_SERVER_STORE_POSTGRES_SCHEMA_H_
#define HONE_SERVER_STORE_POSTGRES_SCHEMA_H_

#include "absl/status/status.h"
#include "server/store/postgres/connection.h"

namespace hone::store {

// Applies the missing migrations to an empty schema of the database or an older store. PostgreSQL's
// migrations have their own numbers; each runs in one transaction, which stores its number in the
// table hone_schema. Replicas that start at the same time wait for each other. FailedPrecondition:
// the store is from a newer Hone, or the schema contains tables of another program.
absl::Status MigratePostgres(PostgresConnection& connection);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_SCHEMA_H_
