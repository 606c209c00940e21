#ifndef HONE_SERVER_LAB_JOINT_TRAINER_H_
#define HONE_SERVER_LAB_JOINT_TRAINER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/cost_model/cost_model.h"
#include "server/search/search_strategy.h"
#include "server/task/task_environment.h"

namespace hone::lab {

// Trains cost models on results of another workload and of a task's own together, as Ansor does
// across tasks: throughput is relative to the best of the workload that a result is of. Used by one
// thread at a time.
class JointTrainer {
 public:
  // The environment outlives it. REQUIRES the model's name is known and that it reads features.
  JointTrainer(const task::TaskEnvironment* environment, std::string model,
               const cost_model::CostModelOptions& options)
      : environment_(environment), model_(std::move(model)), options_(options) {}

  // Adds results of a workload; number 0 is the task's own. Candidates without features are left
  // out. Errors of CreateModel.
  absl::Status Add(size_t workload, const task::TaskSpaces& spaces,
                   absl::Span<const search::Measured> results);
  // A new model of everything so far. Errors of CostModel::Update.
  absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> Train() const;

 private:
  const task::TaskEnvironment* const environment_;
  const std::string model_;
  const cost_model::CostModelOptions options_;
  cost_model::FeatureMatrix features_;
  std::vector<size_t> workloads_;  // per candidate of features_
  std::vector<double> latencies_;  // the same; 0: it failed
};

// `count` of the results, drawn at random by the seed; all where there are no more.
std::vector<search::Measured> DrawResults(std::vector<search::Measured> results, size_t count,
                                          uint64_t seed);

}  // namespace hone::lab

#endif  // HONE_SERVER_LAB_JOINT_TRAINER_H_
