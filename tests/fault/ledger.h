#ifndef HONE_TESTS_FAULT_LEDGER_H_
#define HONE_TESTS_FAULT_LEDGER_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/record/record.h"

namespace hone::v1 {
class SynchronizeRequest;
class SynchronizeResponse;
}  // namespace hone::v1

namespace hone::fault {

// What a measurement is known by: its samples, which are drawn anew for each run (sim_runner.cc).
// "" where there are none.
std::string MarkOf(const std::vector<double>& samples_ns);

// A candidate of a job under a policy: what was asked for.
struct Asked {
  std::string job;
  std::string space;
  std::vector<int64_t> decisions;
  std::string policy;  // its name
  auto Key() const { return std::tie(job, space, decisions, policy); }
  friend bool operator<(const Asked& a, const Asked& b) { return a.Key() < b.Key(); }
};

// A result that the server told a worker to forget.
struct Acknowledged {
  std::string lease;
  Asked asked;
  record::Outcome outcome = record::Outcome::kOk;
  std::string mark;
  int grants_after = 0;  // other leases of the same candidate since this one was granted
  bool cancelled = false;
};

// What a client was shown of a record.
struct Shown {
  std::string mark;
  std::string outcome;
  std::string job;
  int64_t trial = 0;
  std::string policy;
  friend bool operator==(const Shown&, const Shown&) = default;
};
Shown ShownOf(const record::Record& record);

// The promises: what the server told workers and clients, as it passed by. Thread-safe.
class Ledger {
 public:
  // Of calls of workers, in the order of the server.
  void Told(const v1::SynchronizeRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  void Answered(const v1::SynchronizeResponse& response) ABSL_LOCKS_EXCLUDED(mutex_);
  // A client saw these records.
  void Saw(const std::vector<record::Record>& records) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<Acknowledged> acknowledged() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::map<int64_t, Shown> shown() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A copy of the promises so far, to be kept with a backup.
  struct Promises {
    std::map<std::string, Acknowledged> acknowledged;  // by lease
    std::map<int64_t, Shown> shown;
  };
  Promises Copy() const ABSL_LOCKS_EXCLUDED(mutex_);
  // That backup was put back, and holds these records: from now on the promises that it keeps
  // count.
  struct Restoration {
    int64_t gone = 0;                 // promises made since the backup
    std::vector<std::string> broken;  // records shown before it that it does not hold
  };
  Restoration Restored(const Promises& at_backup, const std::vector<record::Record>& records)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Lease {
    Asked asked;
    bool run = false;
    bool cancelled = false;
    int grant = 0;  // of this candidate, counted from 1
    // The last result that was handed in.
    bool finished = false;
    record::Outcome outcome = record::Outcome::kOk;
    std::string mark;
  };
  mutable absl::Mutex mutex_;
  std::map<std::string, Lease> leases_ ABSL_GUARDED_BY(mutex_);
  std::map<Asked, int> grants_ ABSL_GUARDED_BY(mutex_);
  Promises promises_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_LEDGER_H_
