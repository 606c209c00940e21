#ifndef HONE_SERVER_JOB_SEARCH_TASK_ROWS_H_
#define HONE_SERVER_JOB_SEARCH_TASK_ROWS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/job/actor/task_environment.h"
#include "server/job/search/recorded_task.h"
#include "server/store/store.h"
#include "server/tuner/cost_model/cost_model.h"

namespace hone::job {

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

  // Adds candidate i of a task. REQUIRES: the same feature set in all calls.
  void Add(const TaskRows& task, int i);
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_TASK_ROWS_H_
