#ifndef HONE_SERVER_STORE_SQLITE_COMPACTION_H_
#define HONE_SERVER_STORE_SQLITE_COMPACTION_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace hone::store {

// How compaction reaches the database: each piece of work is run once, and its status returned.
struct CompactionAccess {
  using Work = std::function<absl::Status(SqliteConnection&)>;
  std::function<absl::Status(const Work&)> read;
  std::function<absl::Status(const Work&)> write;  // in a transaction, between other writes
  std::function<bool()> cancelled;
};

// See Store::Compact. Goes through the records one workload after another and removes a few hundred
// rows at a time, so that other writes wait for milliseconds. Broken off or failed, it leaves a
// sound store from which a part is removed.
absl::StatusOr<CompactReport> CompactStore(const CompactionAccess& access,
                                           const CompactOptions& options);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_COMPACTION_H_
