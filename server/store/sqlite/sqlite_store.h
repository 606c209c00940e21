#ifndef HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_
#define HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "server/store/store.h"

namespace hone::store {

struct SqliteStoreOptions {
  // Reads that may run at the same time; a further one waits.
  size_t max_readers = 16;
  // Reads the whole database in the background after opening; when it is damaged, says so in the
  // log and refuses writes.
  bool check_integrity = true;
  // When a best is published and replaced. Outlives the store; null: the system's clock.
  const Clock* clock = nullptr;
};

// OpenSqliteStore of store.h with its options.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                       const SqliteStoreOptions& options);

// The path without symbolic links, so that every name of a store has the same lock file; makes its
// folder. InvalidArgument: it names no file.
absl::StatusOr<std::string> CanonicalStorePath(const std::string& path);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_
