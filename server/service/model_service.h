#ifndef HONE_SERVER_SERVICE_MODEL_SERVICE_H_
#define HONE_SERVER_SERVICE_MODEL_SERVICE_H_

#include "absl/status/status.h"
#include "hone/v1/tuning.pb.h"
#include "server/service/handler.h"

namespace hone::service {

// The calls about cost models and features. Thread-safe. Errors are those of tuning.proto.
class ModelService {
 public:
  explicit ModelService(const Dependencies& deps) : deps_(deps) {}

  absl::Status ListModels(const v1::ListModelsRequest&, v1::ListModelsResponse*);
  void TrainModel(Context*, const v1::TrainModelRequest*, v1::StoredModel*, Reply);
  void EvaluateModels(Context*, const v1::EvaluateModelsRequest*, v1::EvaluateModelsResponse*,
                      Reply);
  absl::Status DescribeFeatures(const v1::DescribeFeaturesRequest&, v1::FeatureTable*);

 private:
  const Dependencies& deps_;
};

}  // namespace hone::service

#endif  // HONE_SERVER_SERVICE_MODEL_SERVICE_H_
