#ifndef HONE_SERVER_STORE_SQLITE_COMPACTION_H_
#define HONE_SERVER_STORE_SQLITE_COMPACTION_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/sqlite/connection.h"
#include "server/store/store.h"

namespace hone::store {

// The access of a compaction to the database. Each function runs the work once and returns its
// status.
struct CompactionAccess {
  using Work = std::function<absl::Status(SqliteConnection&)>;
  std::function<absl::Status(const Work&)> read;
  std::function<absl::Status(const Work&)> write;  // in a transaction, between other writes
  std::function<bool()> cancelled;
};

// See Store::Compact. Handles one workload after the other, and removes a few hundred rows at a
// time, so that other writes wait only for milliseconds. After a cancellation or an error, the
// store is intact and only a part of the rows has been removed.
absl::StatusOr<CompactReport> CompactStore(const CompactionAccess& access,
                                           const CompactOptions& options);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_SQLITE_COMPACTION_H_
