#ifndef HONE_SERVER_TASK_RECORDED_TASK_H_
#define HONE_SERVER_TASK_RECORDED_TASK_H_

#include <cstdint>
#include <functional>
#include <string>
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

struct RecordedTasks {
  std::string target;               // key
  std::vector<RecordedTask> tasks;  // by workload digest
  int64_t records = 0;              // that were read and could be used
  int64_t left_out = 0;             // quarantined, implausible, or of a job that nobody knows
};

// Reads screened trials from the store (confirmations measure the same candidates again); of a
// candidate measured twice the later one counts. `stop` is asked once a page, and its error
// returned. NotFound: there are no such records; the message says what there is to do. Errors of
// the store.
absl::StatusOr<RecordedTasks> ReadRecordedTasks(store::Store& store, const RecordedTaskQuery& query,
                                                const std::function<absl::Status()>& stop);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_RECORDED_TASK_H_
