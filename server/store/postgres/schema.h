#ifndef HONE_SERVER_STORE_POSTGRES_SCHEMA_H_
#define HONE_SERVER_STORE_POSTGRES_SCHEMA_H_

#include "absl/status/status.h"
#include "server/store/postgres/connection.h"

namespace hone::store {

// Brings an empty schema of the database, or a store of an older version, up to date; numbered
// migrations of its own, each in one transaction with its number (table hone_schema). Replicas that
// start together wait for each other. FailedPrecondition: the store is of a newer Hone, or the
// schema holds tables of another program.
absl::Status MigratePostgres(PostgresConnection& connection);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_SCHEMA_H_
