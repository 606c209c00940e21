#ifndef HONE_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_
#define HONE_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "server/store/store.h"

namespace hone::store {

struct PostgresStoreOptions {
  size_t max_readers = 8;  // connections; a further read waits
  // When a best is published and replaced. Outlives the store; null: the system's clock.
  const Clock* clock = nullptr;
};

// Opens the store in a PostgreSQL database (15 or newer), which several server replicas may share,
// and makes or migrates its tables. `place`: "postgresql://user@host/database"; a password belongs
// into libpq's password file. Unavailable: it cannot be reached. PermissionDenied: it does not let
// this user in. FailedPrecondition: as of MigratePostgres, or the database is not in UTF-8.
absl::StatusOr<std::unique_ptr<Store>> OpenPostgresStore(const std::string& place,
                                                         const PostgresStoreOptions& options = {});

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_POSTGRES_POSTGRES_STORE_H_
