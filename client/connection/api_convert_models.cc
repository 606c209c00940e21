// Conversions for the calls about cost models.

#include "client/connection/api_convert.h"

namespace hone::client {
namespace {

void Fill(const ModelChoice& choice, v1::ModelChoice& message) {
  message.set_name(choice.name);
  message.set_feature_set(choice.feature_set);
}

}  // namespace

v1::TrainModelRequest ToProto(const TrainingRequest& request) {
  v1::TrainModelRequest message;
  Fill(request.model, *message.mutable_model());
  message.set_target(request.target);
  message.set_operator_(request.op);
  message.set_max_records(request.records);
  message.set_seed(request.seed);
  return message;
}

v1::EvaluateModelsRequest ToProto(const EvaluationRequest& request) {
  v1::EvaluateModelsRequest message;
  for (const ModelChoice& choice : request.models) Fill(choice, *message.add_models());
  message.set_target(request.target);
  message.set_operator_(request.op);
  for (const std::string& word : request.held_out) message.add_held_out(word);
  message.set_held_out_trials(request.held_out_trials);
  message.set_max_records(request.records);
  message.set_seed(request.seed);
  message.set_k(request.k);
  return message;
}

StoredModel FromProto(const v1::StoredModel& message) {
  return {.id = message.id(),
          .name = message.name(),
          .feature_set = message.feature_set(),
          .target = message.target(),
          .op = message.operator_(),
          .version = message.version(),
          .records = message.records(),
          .workloads = message.workloads(),
          .created_unix_ms = message.created_unix_ms(),
          .metrics = message.metrics(),
          .size_bytes = message.size_bytes()};
}

ModelList FromProto(const v1::ListModelsResponse& message) {
  ModelList list;
  for (const v1::ModelKind& kind : message.kinds()) {
    list.kinds.push_back({.name = kind.name(),
                          .feature_set = kind.feature_set(),
                          .any_features = kind.any_features(),
                          .has_spread = kind.has_spread(),
                          .missing = kind.missing()});
  }
  for (const v1::StoredModel& model : message.models()) list.models.push_back(FromProto(model));
  return list;
}

ModelEvaluation FromProto(const v1::EvaluateModelsResponse& message) {
  ModelEvaluation evaluation{.target = message.target(),
                             .workloads = message.workloads(),
                             .candidates = message.candidates(),
                             .left_out = message.left_out()};
  for (const v1::LeftOut& row : message.left_out_because()) {
    evaluation.left_out_because.emplace_back(row.reason(), row.count());
  }
  for (const v1::ModelScore& score : message.scores()) {
    evaluation.scores.push_back({.model = score.model(),
                                 .feature_set = score.feature_set(),
                                 .held_out = score.held_out(),
                                 .trained_on = score.trained_on(),
                                 .evaluated_on = score.evaluated_on(),
                                 .tasks = score.tasks(),
                                 .top1 = score.top1(),
                                 .top5 = score.top5(),
                                 .peak = score.peak(),
                                 .recall = score.recall(),
                                 .pairwise = score.pairwise(),
                                 .rmse = score.rmse(),
                                 .calibration_error = score.calibration_error(),
                                 .coverage1 = score.coverage1(),
                                 .coverage2 = score.coverage2(),
                                 .predict_us = score.predict_us(),
                                 .train_ms = score.train_ms()});
  }
  return evaluation;
}

}  // namespace hone::client
