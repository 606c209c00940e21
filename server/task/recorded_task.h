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

// A measured candidate.
struct RecordedCandidate {
  record::Candidate candidate;
  double latency_ns = 0;  // steady (record::SteadyLatencyNs); 0: it failed
};

// The measurements of one workload on one target. Cost models are trained and evaluated on them.
struct RecordedTask {
  std::string workload_digest;
  std::string op;
  std::string target_key;
  std::string target;  // text form
  // Every candidate once, sorted by digest: the order does not reveal when each was found.
  std::vector<RecordedCandidate> candidates;
};

struct RecordedTaskQuery {
  std::string target;  // key; "": the target with the most records
  std::string op;      // "": every operator
  // The most records to use, spread over workloads as evenly as possible. At least 1.
  int64_t max_records = 4000;
};

// Numbers of measurements that cannot be used, by reason.
struct LeftOut {
  int64_t quarantined = 0;
  int64_t implausible = 0;     // ok, with an impossible latency
  int64_t unknown_target = 0;  // no stored job describes the target
  int64_t not_replayed = 0;    // the space is not stored, or the candidate is stale

  int64_t Total() const { return quarantined + implausible + unknown_target + not_replayed; }
  // The reasons that occurred, as text, with their counts.
  std::vector<std::pair<std::string, int64_t>> Reasons() const;
  // "12: 10 quarantined, 2 …"; "" if nothing was left out.
  std::string ToText() const;
};

struct RecordedTasks {
  std::string target;               // key
  std::vector<RecordedTask> tasks;  // by workload digest
  int64_t records = 0;              // that could be used
  LeftOut left_out;
};

// Reads screened trials from the store; confirmations measure the same candidates again. If a
// candidate was measured twice, the later record counts. The description of the target comes from a
// stored job: devices with the same target key are interchangeable. `stop` is called once a page,
// and an error ends the reading. NotFound: there are no such records; the message says what to do.
// Other errors are those of the store.
absl::StatusOr<RecordedTasks> ReadRecordedTasks(store::Store& store, const RecordedTaskQuery& query,
                                                const std::function<absl::Status()>& stop);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_RECORDED_TASK_H_
