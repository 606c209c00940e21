#ifndef HONE_SERVER_SERVICE_MODEL_CONVERT_H_
#define HONE_SERVER_SERVICE_MODEL_CONVERT_H_

#include "absl/status/statusor.h"
#include "hone/v1/tuning.pb.h"
#include "server/job/search/model_work.h"
#include "server/store/store.h"
#include "server/tuner/cost_model/registry.h"

namespace hone::service {

// Limits of requests about models.
inline constexpr int kMaxModels = 64;  // in one evaluation
inline constexpr int64_t kMaxModelRecords = 50'000;
inline constexpr int kMaxHeldOut = 64;

// Converts a request to a query, with defaults filled in. InvalidArgument: a number is out of
// range, or a text or a list is too long; the message names the field.
absl::StatusOr<job::TrainingQuery> ToQuery(const v1::TrainModelRequest& request,
                                           const job::TaskEnvironment& environment);
absl::StatusOr<job::EvaluationQuery> ToQuery(const v1::EvaluateModelsRequest& request,
                                             const job::TaskEnvironment& environment);

v1::ModelKind ToProto(const cost_model::CostModelInfo& info);
v1::StoredModel ToProto(const store::ModelRow& row);
v1::EvaluateModelsResponse ToProto(const job::ModelEvaluation& evaluation);

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_MODEL_CONVERT_H_
