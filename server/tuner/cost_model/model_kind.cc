#include "server/tuner/cost_model/model_kind.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/tuner/cost_model/model_file.h"
#include "server/tuner/cost_model/validate.h"

namespace hone::cost_model {
namespace {

class Model final : public CostModel {
 public:
  Model(const ModelKind& kind, const CostModelOptions& options)
      : kind_(kind), options_(options), predictor_(kind.make(options)) {
    if (options_.feature_set.empty()) options_.feature_set = std::string(kind.feature_set);
  }

  absl::string_view name() const override { return kind_.name; }
  absl::string_view feature_set() const override { return options_.feature_set; }

  absl::Status Update(const FeatureMatrix& features, absl::Span<const double> throughput) override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features, ReadsFeatures(), kind_.columns));
    HONE_RETURN_IF_ERROR(ValidateThroughput(features, throughput));
    std::unique_ptr<Predictor> predictor = kind_.make(options_);
    if (features.candidates() > 0) HONE_RETURN_IF_ERROR(predictor->Train(features, throughput));
    predictor_ = std::move(predictor);
    return absl::OkStatus();
  }

  absl::StatusOr<Prediction> Predict(const FeatureMatrix& features) const override {
    HONE_RETURN_IF_ERROR(ValidateFeatures(features, ReadsFeatures(), columns()));
    if (!SeenNothing()) return predictor_->Predict(features);
    return Prediction{.mean = std::vector<double>(features.candidates(), 0.0)};
  }

  absl::StatusOr<std::string> Save() const override {
    ByteWriter writer;
    predictor_->Serialize(writer);
    ModelHeader header = Header();
    header.columns = static_cast<uint32_t>(predictor_->columns());
    return EncodeModel(header, std::move(writer).Finish());
  }

  absl::Status Load(absl::string_view bytes) override {
    HONE_ASSIGN_OR_RETURN(const ModelFile file, DecodeModel(bytes, Header()));
    ByteReader reader(file.payload);
    std::unique_ptr<Predictor> predictor = kind_.make(options_);
    HONE_RETURN_IF_ERROR(predictor->Parse(reader));
    if (reader.remaining() != 0 ||
        file.header.columns != static_cast<uint32_t>(predictor->columns())) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cannot load the cost model: it reads ", predictor->columns(), " columns, with ",
          reader.remaining(), " bytes left, but its header has ", file.header.columns, " columns"));
    }
    predictor_ = std::move(predictor);
    return absl::OkStatus();
  }

 private:
  int columns() const { return kind_.columns > 0 ? kind_.columns : predictor_->columns(); }
  bool ReadsFeatures() const { return !kind_.feature_set.empty(); }
  bool SeenNothing() const { return ReadsFeatures() && columns() == 0; }

  ModelHeader Header() const {
    return {.name = std::string(kind_.name),
            .version = kind_.version,
            .feature_set = options_.feature_set};
  }

  const ModelKind kind_;
  CostModelOptions options_;
  std::unique_ptr<Predictor> predictor_;
};

}  // namespace

std::unique_ptr<CostModel> MakeModel(const ModelKind& kind, const CostModelOptions& options) {
  return std::make_unique<Model>(kind, options);
}

}  // namespace hone::cost_model
