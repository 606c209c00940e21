#ifndef HONE_SERVER_STORE_RETENTION_H_
#define HONE_SERVER_STORE_RETENTION_H_

#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/store/connection.h"
#include "server/store/store.h"

namespace hone::store {

// The access of a compaction to the database.
struct RetentionAccess {
  using Work = std::function<absl::Status(Connection&)>;
  std::function<absl::Status(const Work&)> read;
  // Runs the work in a transaction, between other writes. It may run more than once; only the last
  // run counts.
  std::function<absl::Status(const Work&)> write;
  std::function<absl::Status()> free_space;  // gives unused space back to the disk
  std::function<bool()> cancelled;
};

// See Store::Compact. Works on one workload after the other and in steps of a few hundred rows, on
// every database in the same way.
absl::StatusOr<CompactReport> RemoveOldRows(const RetentionAccess& access,
                                            const CompactOptions& options);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_RETENTION_H_
