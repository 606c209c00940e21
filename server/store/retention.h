#ifndef HONE_SERVER_STORE_RETENTION_H_
#define HONE_SERVER_STORE_RETENTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

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
  int64_t now_unix_ms = 0;  // when the compaction begins, by the clock of the store
};

// See Store::Compact. Works on one workload after the other and in steps of a few hundred rows, on
// every database in the same way.
absl::StatusOr<CompactReport> RemoveOldRows(const RetentionAccess& access,
                                            const CompactOptions& options);

// A record, as far as it matters for what is kept.
struct RecordEntry {
  int64_t id = 0;
  int64_t created_unix_ms = 0;
  double latency_ns = 0;  // NaN or 0: none
  int64_t bytes = 0;
  size_t candidate = 0;  // a hash of its target, space and decisions
  bool is_good = false;  // ok, not quarantined and with a latency
  bool is_quarantined = false;
  bool is_screened = false;
  bool is_confirmed = false;
  bool is_default = false;
  bool is_kept = false;
};

// Marks which of a task's records a compaction keeps because of the task's other records:
// - the fastest ones (CompactOptions::keep_best), which new searches and revalidations begin with
// - the fastest confirmed ones, one of which may become the published best, such as that of an
//   import
// - the newest confirmations of the default schedule, to which speed-ups refer
// - an even sample of the others (keep_sample): a model that knew only the fastest ones could not
//   tell a slow schedule. A record stays in the sample however often this is repeated.
void KeepOfTask(std::vector<RecordEntry>& entries, const CompactOptions& options);

}  // namespace hone::store

#endif  // HONE_SERVER_STORE_RETENTION_H_
