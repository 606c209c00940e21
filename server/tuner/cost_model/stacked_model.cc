#include "server/tuner/cost_model/stacked_model.h"

#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "server/tuner/cost_model/byte_io.h"
#include "server/tuner/cost_model/model_file.h"

namespace hone::cost_model {
namespace {

constexpr double kHalfLife = 64;
constexpr double kLeastWeight = 0.05;

class StackedModel final : public CostModel {
 public:
  StackedModel(std::unique_ptr<CostModel> own, std::shared_ptr<const CostModel> related)
      : own_(std::move(own)), related_(std::move(related)) {}

  absl::string_view name() const override { return own_->name(); }
  absl::string_view feature_set() const override { return own_->feature_set(); }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(own_->Update(features, throughput));
    results_ = throughput.size();
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    const double weight = TransferWeight(results_);
    if (weight == 0) return own_->Predict(features);
    HONE_ASSIGN_OR_RETURN(Prediction prediction, related_->Predict(features));
    if (results_ == 0) return prediction;
    HONE_ASSIGN_OR_RETURN(const Prediction own, own_->Predict(features));
    for (size_t i = 0; i < prediction.mean.size(); ++i) {
      prediction.mean[i] = weight * prediction.mean[i] + (1 - weight) * own.mean[i];
    }
    for (size_t i = 0; i < prediction.spread.size() && i < own.spread.size(); ++i) {
      prediction.spread[i] =
          std::hypot(weight * prediction.spread[i], (1 - weight) * own.spread[i]);
    }
    return prediction;
  }

  absl::StatusOr<std::string> Save() const override {
    HONE_ASSIGN_OR_RETURN(const std::string own, own_->Save());
    ByteWriter writer;
    writer.Add(results_, own);
    return EncodeModel(Header(), std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header()));
    ByteReader reader(file.payload);
    uint64_t results = 0;
    absl::string_view own;
    HONE_RETURN_IF_ERROR(reader.Read(results, own));
    HONE_RETURN_IF_ERROR(own_->Load(own));
    results_ = results;
    return absl::OkStatus();
  }

 private:
  ModelHeader Header() const {
    return {.name = std::string("stacked-") + std::string(own_->name()),
            .version = 1,
            .feature_set = std::string(own_->feature_set())};
  }

  const std::unique_ptr<CostModel> own_;
  const std::shared_ptr<const CostModel> related_;
  size_t results_ = 0;  // number of training candidates of the own model
};

}  // namespace

double TransferWeight(size_t results) {
  const double weight = std::exp2(-static_cast<double>(results) / kHalfLife);
  return weight < kLeastWeight ? 0 : weight;
}

std::unique_ptr<CostModel> MakeStackedModel(std::unique_ptr<CostModel> own,
                                            std::shared_ptr<const CostModel> related) {
  return std::make_unique<StackedModel>(std::move(own), std::move(related));
}

}  // namespace hone::cost_model
