#ifndef HONE_SERVER_TASK_MODEL_EVALUATION_H_
#define HONE_SERVER_TASK_MODEL_EVALUATION_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/clock.h"
#include "server/store/store.h"
#include "server/task/recorded_task.h"
#include "server/task/task_environment.h"

namespace hone::task {

// A model by its registered name, and the feature set it shall read ("": its own).
struct ModelChoice {
  std::string name;
  std::string feature_set;
};

struct EvaluationQuery {
  RecordedTaskQuery records;
  std::vector<ModelChoice> models;
  // Tasks to hold out: operators' names, or beginnings of workload digests (6 digits or more).
  std::vector<std::string> held_out;
  // Share of every task's trials to hold out, in (0, 1); 0 none.
  double held_out_trials = 0;
  // Neither of the two: both, 0.3 of the trials, and every task in turn (the five largest).
  uint64_t seed = 0;
  int k = 16;  // of peak@k and recall@k
};

// How good a model is on candidates that it was not trained on. The metrics are those of
// server/cost_model/metric_*.h: top-k over all tasks, peak, recall and pairwise accuracy (of pairs
// that differ by more than 3 % of the best) as means over tasks, the others over all candidates.
struct ModelScore {
  std::string model;
  std::string feature_set;
  std::string held_out;      // "tasks" or "trials"
  int64_t trained_on = 0;    // candidates, the mean over the trainings
  int64_t evaluated_on = 0;  // candidates
  int64_t tasks = 0;         // that these are of
  double top1 = 0, top5 = 0, peak = 0, recall = 0, pairwise = 0;
  double rmse = 0, calibration_error = 0;
  // Within one and two spreads; not a number where the model has none.
  double coverage1 = std::numeric_limits<double>::quiet_NaN();
  double coverage2 = std::numeric_limits<double>::quiet_NaN();
  double predict_us = 0;  // per candidate, features not counted
  double train_ms = 0;    // the mean over the trainings
};

struct ModelEvaluation {
  std::string target;  // key
  int64_t tasks = 0;
  int64_t candidates = 0;
  LeftOut left_out;                // measurements that were not used
  std::vector<ModelScore> scores;  // of every model on tasks, on trials
};

// What an evaluation works with. All outlive it.
struct EvaluationServices {
  const Clock* clock = nullptr;
  store::Store* store = nullptr;
  const TaskEnvironment* environment = nullptr;
  // Called every few milliseconds of work, and between trainings, which take longer; its error ends
  // the evaluation.
  std::function<absl::Status()> pause;
};

// Trains every model on the rest and asks it about what is held out. NotFound: no measurements, no
// such model, or nothing is called as what shall be held out (lists what there is).
// InvalidArgument: a share or k out of range, no models, a feature set that a model does not read.
// FailedPrecondition: too few measurements (says how many there are and how many it takes), or the
// model is not in this build.
absl::StatusOr<ModelEvaluation> EvaluateModels(const EvaluationServices& services,
                                               const EvaluationQuery& query);

}  // namespace hone::task

#endif  // HONE_SERVER_TASK_MODEL_EVALUATION_H_
