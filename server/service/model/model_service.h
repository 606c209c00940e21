#ifndef HONE_SERVER_SERVICE_MODEL_MODEL_SERVICE_H_
#define HONE_SERVER_SERVICE_MODEL_MODEL_SERVICE_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "hone/v1/tuning.pb.h"
#include "server/job/search/model_work.h"
#include "server/service/handler.h"
#include "server/store/store.h"
#include "server/tuner/cost_model/registry.h"

namespace hone::service {

// Limits of requests about models.
inline constexpr int kMaxModels = 64;  // in one evaluation
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

// The calls about cost models and features. Thread-safe. Errors are those of tuning.proto and
// admin.proto.
class ModelService {
 public:
  explicit ModelService(const Dependencies& deps) : deps_(deps) {}

  absl::Status ListModels(const v1::ListModelsRequest&, v1::ListModelsResponse*);
  void TrainModel(Context*, const v1::TrainModelRequest*, v1::StoredModel*, Reply);
  void EvaluateModels(Context*, const v1::EvaluateModelsRequest*, v1::EvaluateModelsResponse*,
                      Reply);
  grpc::ServerWriteReactor<v1::ArtifactChunk>* ExportModel(const rpc::Identity&, Context*,
                                                           const v1::ExportModelRequest*);
  grpc::ServerReadReactor<v1::ArtifactChunk>* ImportModel(Context*, v1::StoredModel*);
  absl::Status DescribeFeatures(const v1::DescribeFeaturesRequest&, v1::FeatureTable*);

 private:
  absl::StatusOr<std::shared_ptr<const std::string>> FileOf(int64_t id) const;
  // Checks a file and stores its model. `done` gets the row without its bytes.
  void KeepFile(const std::string& bytes,
                std::function<void(absl::StatusOr<store::ModelRow>)> done) const;

  const Dependencies& deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_MODEL_MODEL_SERVICE_H_
