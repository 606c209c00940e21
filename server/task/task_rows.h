#ifndef HONE_SERVER_TASK_TASK_ROWS_H_
#define HONE_SERVER_TASK_TASK_ROWS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/cost_model/cost_model.h"
#include "server/store/store.h"
#include "server/task/recorded_task.h"
#include "server/task/task_environment.h"

namespace hone::task {

// A recorded task as a cost model sees it: candidate i of `features` took latency_ns[i] (0: it
// failed).
struct TaskRows {
  std::string workload_digest;
  std::string op;
  cost_model::FeatureMatrix features;
  std::vector<double> latency_ns;
  double best_ns = 0;  // 0: none ran
  int left_out = 0;    // candidates that do not replay with this program

  int candidates() const { return static_cast<int>(latency_ns.size()); }
  // The label of CostModel::Update.
  double Throughput(int i) const { return latency_ns[i] > 0 ? best_ns / latency_ns[i] : 0; }
};

// Replays the candidates and extracts their rows; "" is the feature set of models that read none.
// `pause` is called every few milliseconds of work, to let go of locks; its error is returned. A
// space that is not in the store, or that this program refuses, leaves its candidates out.
// NotFound: there is no such feature set.
absl::StatusOr<std::vector<TaskRows>> ExtractRows(const TaskEnvironment& environment,
                                                  store::Store& store,
                                                  absl::Span<const RecordedTask> tasks,
                                                  const std::string& feature_set,
                                                  const std::function<absl::Status()>& pause);

// Training material, or the candidates of one task that a model is asked about.
struct LabelledRows {
  cost_model::FeatureMatrix features;
  std::vector<double> throughput;

  // Adds candidate i of a task. REQUIRES the same feature set every time.
  void Add(const TaskRows& task, int i);
};

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_TASK_ROWS_H_
