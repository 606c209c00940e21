#ifndef HONE_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_
#define HONE_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "server/store/store.h"

namespace hone::store {

struct PostgresStoreOptions {
  size_t max_readers = 16;  // maximum number of connections for reads; further reads wait
  // For the times of publications. Outlives the store; if null, the system's clock is used.
  const Clock* clock = nullptr;
};

// Opens the store in a PostgreSQL database (15 or newer), which several servers may open. Only the
// one that leads writes (Store::Lead). Creates the tables in an empty database. `place`:
// "postgresql://user@host/database"; the password should be in libpq's password file. Unavailable:
// the database cannot be reached. PermissionDenied: this user has no access. FailedPrecondition:
// see MigratePostgres and CheckLeaderSettings, or the encoding is not UTF-8.
absl::StatusOr<std::unique_ptr<Store>> OpenPostgresStore(const std::string& place,
                                                         const PostgresStoreOptions& options = {});

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_
