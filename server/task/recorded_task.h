#ifndef HONE_SERVER_TASK_RECORDED_TASK_H_
#define HONE_SERVER_TASK_RECORDED_TASK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/record/record.h"
#include "server/store/store.h"

namespace hone::task {

// A candidate as it was measured.
struct RecordedCandidate {
  record::Candidate candidate;
  double latency_ns = 0;  // steady (record::SteadyLatencyNs); 0: it failed
};

// What the store knows of one workload on one target: the material that cost models are trained and
// judged on.
struct RecordedTask {
  std::string workload_digest;
  std::string op;
  std::string target_key;
  std::string target;  // text form
  // Every candidate once, by its digest: their order says nothing of when they were found.
  std::vector<RecordedCandidate> candidates;
};

struct RecordedTaskQuery {
  std::string target;  // key; "" the target that has most records
  std::string op;      // "" every operator
  // At most, as evenly over workloads as they have them; from 1.
  int64_t max_records = 4000;
};

// Measurements that cannot be used, by reason.
struct LeftOut {
  int64_t quarantined = 0;
  int64_t implausible = 0;     // "ok" with a latency that no device has
  int64_t unknown_target = 0;  // what their target is like is not stored: no job of it is known
  int64_t not_replayed = 0;    // candidates whose space is not stored, or that are stale

  int64_t Total() const { return quarantined + implausible + unknown_target + not_replayed; }
  // The reasons that occurred, in words, with their counts.
  std::vector<std::pair<std::string, int64_t>> Reasons() const;
  // "12: 10 quarantined, 2 …"; "" for none.
  std::string ToText() const;
};

struct RecordedTasks {
  std::string target;               // key
  std::vector<RecordedTask> tasks;  // by workload digest
  int64_t records = 0;              // that were read and could be used
  LeftOut left_out;
};

// Reads screened trials from the store (confirmations measure the same candidates again); of a
// candidate measured twice the later one counts. A target's description is that of the record's
// job; where the store does not know the job (records that came from another store), that of any
// job with the same target key. `stop` is asked once a page, and its error
// returned. NotFound: there are no such records; the message says what there is to do. Errors of
// the store.
absl::StatusOr<RecordedTasks> ReadRecordedTasks(store::Store& store, const RecordedTaskQuery& query,
                                                const std::function<absl::Status()>& stop);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_RECORDED_TASK_H_
