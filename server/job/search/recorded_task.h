#ifndef HONE_SERVER_JOB_SEARCH_RECORDED_TASK_H_
#define HONE_SERVER_JOB_SEARCH_RECORDED_TASK_H_

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/record/record.h"
#include "server/job/actor/task_environment.h"
#include "server/store/store.h"
#include "server/tuner/cost_model/cost_model.h"

namespace hone::job {

// Returns whether a latency is between a nanosecond and an hour. Results outside this range are not
// used for training: labels of a model are relative to the best latency of a task, so one absurd
// latency would spoil all of them.
inline bool IsPlausibleLatency(double nanoseconds) {
  return nanoseconds >= 1 && nanoseconds <= 3.6e12;  // false for NaN
}

// A measured candidate.
struct RecordedCandidate {
  record::Candidate candidate;
  double latency_ns = 0;  // steady (record::SteadyLatencyNs); 0: failed
};

// The measurements of one workload on one target, for training and evaluating cost models.
struct RecordedTask {
  std::string workload_digest;
  std::string op;
  std::string target_key;
  std::string target;  // text form
  // Every candidate once, sorted by digest. The order thus does not depend on when each was found.
  std::vector<RecordedCandidate> candidates;
};

struct RecordedTaskQuery {
  std::string target;  // key; "": the target with the most records
  std::string op;      // "": every operator
  // Maximum number of records to use: a random sample of each workload, of the same size for all
  // workloads that have as many. At least 1.
  int64_t max_records = 4000;
};

// The number of measurements that cannot be used, by reason.
struct LeftOut {
  int64_t quarantined = 0;
  int64_t implausible = 0;     // ok, with an impossible latency
  int64_t unknown_target = 0;  // no stored job describes the target
  int64_t not_replayed = 0;    // the space is not stored, or the candidate is stale

  int64_t Total() const { return quarantined + implausible + unknown_target + not_replayed; }
  // Returns the reasons that occurred, as text, with their counts.
  std::vector<std::pair<std::string, int64_t>> Reasons() const;
  // Returns a text such as "12 left out: 10 quarantined, 2 …"; "" if nothing was left out.
  std::string ToText() const;
};

struct RecordedTasks {
  std::string target;               // key
  std::string target_text;          // with the calibration of a job of that target
  std::vector<RecordedTask> tasks;  // by workload digest
  int64_t records = 0;              // number of usable records
  LeftOut left_out;
};

// Reads screened trials from the store, without confirmations, which measure the same candidates
// again. If a candidate was measured twice, the later record counts. The description of the target
// comes from any stored job, because devices with the same target key are interchangeable. Reads
// page by page, and holds about twice `max_records` candidates of each target at most. `stop` is
// called for each page; its error ends the call. NotFound: there are no such records; the message
// says what to do. Other errors are those of the store.
absl::StatusOr<RecordedTasks> ReadRecordedTasks(store::Store& store, const RecordedTaskQuery& query,
                                                const std::function<absl::Status()>& stop);

// The feature rows and latencies of a recorded task: candidate i of `features` took latency_ns[i]
// (0: failed).
struct TaskRows {
  std::string workload_digest;
  std::string op;
  cost_model::FeatureMatrix features;
  std::vector<double> latency_ns;
  double best_ns = 0;  // 0: no candidate ran
  int left_out = 0;    // candidates that do not replay with this program

  int candidates() const { return static_cast<int>(latency_ns.size()); }
  // Returns the label for CostModel::Update.
  double Throughput(int i) const { return latency_ns[i] > 0 ? best_ns / latency_ns[i] : 0; }
};

// Replays the candidates and extracts their rows. `feature_set` is "" for models that read no
// features. `pause` is called every few milliseconds, to release locks; its error is returned.
// Candidates are left out if their space is not stored or this version of the program refuses it.
// NotFound: the feature set is unknown.
absl::StatusOr<std::vector<TaskRows>> ExtractRows(const TaskEnvironment& environment,
                                                  store::Store& store,
                                                  absl::Span<const RecordedTask> tasks,
                                                  const std::string& feature_set,
                                                  const std::function<absl::Status()>& pause);

// Feature rows with labels, for training or evaluation.
struct LabelledRows {
  cost_model::FeatureMatrix features;
  std::vector<double> throughput;
  std::vector<int32_t> tasks;

  // Adds candidate i of the task with a number. REQUIRES: the same feature set in all calls.
  void Add(const TaskRows& task, int32_t number, int i);
  cost_model::Labels labels() const { return {throughput, tasks}; }
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_RECORDED_TASK_H_
