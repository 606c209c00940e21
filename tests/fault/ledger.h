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

// Returns the identity of a measurement: its samples, which are random in each run (sim_runner.cc).
// "" without samples.
std::string MarkOf(const std::vector<double>& samples_ns);

// A requested measurement: a candidate of a job under a policy.
struct Asked {
  std::string job;
  std::string space;
  std::vector<int64_t> decisions;
  std::string policy;  // its name
  auto Key() const { return std::tie(job, space, decisions, policy); }
  friend bool operator<(const Asked& a, const Asked& b) { return a.Key() < b.Key(); }
};

// A result that the server has acknowledged.
struct Acknowledged {
  std::string lease;
  Asked asked;
  record::Outcome outcome = record::Outcome::kOk;
  std::string mark;
  // Whether the server said that it had committed the result itself, so that nothing excuses its
  // loss. Otherwise it may have refused the result, because its lease had ended or another run of a
  // server had granted it. The fields below then say whether the candidate is measured again.
  bool stored = false;
  int grants_after = 0;  // later leases of the same candidate
  // Whether another run of a server has continued the job since, or has also granted a lease of the
  // candidate. It measures what it needs, such as no more processes of a finalist that is too slow.
  bool by_several_servers = false;
  bool cancelled = false;
};

// The parts of a record that a client has seen.
struct Shown {
  std::string mark;
  std::string outcome;
  std::string job;
  int64_t trial = 0;
  std::string policy;
  friend bool operator==(const Shown&, const Shown&) = default;
};
Shown ShownOf(const record::Record& record);

// The promises that the server made to workers and clients. Thread-safe.
class Ledger {
 public:
  // Records workers' calls, in the server's order.
  void Told(const v1::SynchronizeRequest& request) ABSL_LOCKS_EXCLUDED(mutex_);
  void Answered(const v1::SynchronizeResponse& response) ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that a client saw these records.
  void Saw(const std::vector<record::Record>& records) ABSL_LOCKS_EXCLUDED(mutex_);

  std::vector<Acknowledged> acknowledged() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::map<int64_t, Shown> shown() const ABSL_LOCKS_EXCLUDED(mutex_);

  // A copy of the promises so far, kept with a backup.
  struct Promises {
    std::map<std::string, Acknowledged> acknowledged;  // by lease
    std::map<int64_t, Shown> shown;
  };
  Promises Copy() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Restores the promises of a backup that holds these records.
  struct Restoration {
    int64_t gone = 0;                 // promises made since the backup
    std::vector<std::string> broken;  // records shown before the backup that it lacks
  };
  Restoration Restored(const Promises& at_backup, const std::vector<record::Record>& records)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Lease {
    Asked asked;
    bool run = false;
    bool cancelled = false;
    int grant = 0;        // number of this candidate's grant, from 1
    bool undone = false;  // by a restored backup, whose job may continue with other candidates
    // The last result that was sent.
    bool finished = false;
    record::Outcome outcome = record::Outcome::kOk;
    std::string mark;
  };
  mutable absl::Mutex mutex_;
  std::map<std::string, Lease> leases_ ABSL_GUARDED_BY(mutex_);
  std::map<Asked, int> grants_ ABSL_GUARDED_BY(mutex_);
  std::map<Asked, std::set<std::string>> servers_ ABSL_GUARDED_BY(mutex_);  // that granted it
  std::map<std::string, std::string> last_server_ ABSL_GUARDED_BY(mutex_);  // by job
  Promises promises_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace hone::fault

#endif  // HONE_TESTS_FAULT_LEDGER_H_
