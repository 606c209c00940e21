#ifndef HONE_SERVER_JOB_SEARCH_TRAINER_H_
#define HONE_SERVER_JOB_SEARCH_TRAINER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/job/actor/task_environment.h"
#include "server/job/search/transfer.h"
#include "server/tuner/cost_model/cost_model.h"
#include "server/tuner/search/search_strategy.h"

namespace hone::job {

// Trains the cost model of a task in the background. It keeps the feature rows of every measured
// candidate and trains each new model on all of them. Used by one thread at a time.
class Trainer {
 public:
  // `transfer` may be null. The model starts from its stored model, or else from a model that the
  // first Train trains on its results. REQUIRES: the model's name is registered.
  Trainer(const TaskEnvironment* environment, const TaskSpaces* spaces, std::string model,
          cost_model::CostModelOptions options, std::shared_ptr<const Transfer> transfer)
      : environment_(environment),
        spaces_(spaces),
        model_(std::move(model)),
        options_(options),
        transfer_(std::move(transfer)) {
    if (transfer_ == nullptr || transfer_->model == nullptr) return;
    related_ = transfer_->model;
    transfer_.reset();
  }

  // Adds `fresh` to the known results and trains a new model on all of them, except for candidates
  // without features.
  absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> Train(
      absl::Span<const search::Measured> fresh);

 private:
  // Trains a model on the related tasks; null if none of their candidates has features here.
  absl::StatusOr<std::shared_ptr<const cost_model::CostModel>> TrainRelated() const;

  const TaskEnvironment* const environment_;
  const TaskSpaces* const spaces_;
  const std::string model_;
  const cost_model::CostModelOptions options_;
  std::shared_ptr<const Transfer> transfer_;  // null once it is no longer needed
  std::shared_ptr<const cost_model::CostModel> related_;
  cost_model::FeatureMatrix features_;
  std::vector<double> latencies_;  // per candidate of features_; 0: failed
};

}  // namespace hone::job

#endif  // HONE_SERVER_JOB_SEARCH_TRAINER_H_
