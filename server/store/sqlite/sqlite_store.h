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
  // Maximum number of simultaneous reads; further reads wait.
  size_t max_readers = 16;
  // Checks the whole database in the background after opening. The first write waits for it (see
  // Soundness::AwaitCheck).
  bool check_integrity = true;
  // For the times of publications. Outlives the store; if null, the system's clock is used.
  const Clock* clock = nullptr;
};

// The same as OpenSqliteStore in store.h, with options.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path,
                                                       const SqliteStoreOptions& options);

// Returns the path without symbolic links, so that every name of a store has the same lock file.
// Creates the folder. InvalidArgument: the path does not name a file.
absl::StatusOr<std::string> CanonicalStorePath(const std::string& path);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_SQLITE_STORE_H_
