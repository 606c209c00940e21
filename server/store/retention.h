#ifndef HONE_SERVER_STORE_RETENTION_H_
#define HONE_SERVER_STORE_RETENTION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/store/connection.h"
#include "server/store/store.h"

namespace hone::store {

// How long the server keeps what would otherwise grow for ever. Store::Compact says what is kept
// regardless of its age. Zero: for ever.
struct RetentionPolicy {
  absl::Duration records = absl::Hours(24 * 365);
  absl::Duration bests = absl::Hours(24 * 365);  // that were replaced
  absl::Duration events = absl::Hours(24 * 90);  // of jobs that are done
  // That have ended. One that failed or was cancelled can be resumed as long as it is kept.
  absl::Duration jobs = absl::Hours(24 * 180);
  // If the store is larger, older records go earlier, but not within kSpared.
  int64_t most_bytes = int64_t{64} << 30;
  static constexpr absl::Duration kSpared = absl::Hours(24 * 30);

  bool IsNone() const;
  // What a compaction by this policy removes at a time.
  CompactOptions At(absl::Time now) const;
};

// Compacts the store by a policy in the background: some time after the start, and then once a day;
// if a run fails, again after an hour. Thread-safe.
class RetentionWork {
 public:
  struct Options {
    RetentionPolicy policy;
    absl::Duration first_wait = absl::Minutes(10);
    absl::Duration pause = absl::Milliseconds(20);  // between two steps
  };
  // For metrics, since the start of the server.
  struct Stats {
    int64_t last_run_unix_s = 0;  // when the last complete run ended; 0: none has
    bool has_failed = false;      // the last run
  };

  // REQUIRES: the clocks and the store outlive this object.
  RetentionWork(const Clock* clock, const Clock* steady_clock, Store* store,
                const Options& options);
  ~RetentionWork();

  // Begins a run if it is due. Called a few times a second while this server leads.
  void Tick();
  // Makes a run in progress end soon. No run begins from now on.
  void Cancel();
  // Waits for the end of a run in progress. REQUIRES: Cancel was called.
  void Join();
  Stats stats() const;

 private:
  void RunAll();
  absl::Status RunOnce();
  bool IsCancelled() const;

  const Clock& clock_;         // the time of day
  const Clock& steady_clock_;  // for intervals
  Store& store_;
  const Options options_;

  mutable absl::Mutex mutex_;
  bool is_due_ ABSL_GUARDED_BY(mutex_) = false;  // a run is to begin, or has begun
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time next_ ABSL_GUARDED_BY(mutex_);
  Stats stats_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // not started without a policy
};

// How a compaction works. The access of one to the database.
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
